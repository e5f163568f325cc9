/*
 * Reads the clocks as fast as it can while somebody moves them. The wall clock
 * must always be off by one of the offsets given, in seconds, unless there are
 * none, and no clock that measures spans may go back. Says what it saw, in one line.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long long ns(struct timespec t) { return t.tv_sec * 1000000000LL + t.tv_nsec; }

static long long true_wall(void) {
	struct timespec t;
	syscall(SYS_clock_gettime, CLOCK_REALTIME, &t);
	return ns(t);
}

static long long wall(int how) {
	struct timespec t;
	struct timeval v;
	switch (how % 3) {
	case 0:
		clock_gettime(CLOCK_REALTIME, &t);
		return ns(t);
	case 1:
		gettimeofday(&v, 0);
		return v.tv_sec * 1000000000LL + v.tv_usec * 1000LL;
	}
	return time(0) * 1000000000LL;
}

int main(int argc, char **argv) {
	static const clockid_t spans[] = {CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME};
	long long last[4] = {0};
	int seen[16] = {0};
	int rounds = atoi(argv[1]), i, j, all = 0;
	struct timespec t;
	if (clock_gettime(12345, &t) != -1 || clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) != 0 || t.tv_sec > 60) {
		puts("other clocks are not what they were");
		return 1;
	}
	for (i = 0; i < rounds || (all < argc - 2 && i < 1000 * rounds); i++) {
		long long grain = i % 3 == 2 ? 1000000000LL : 1000;
		long long before = true_wall(), got = wall(i), after = true_wall();
		for (j = 2; j < argc; j++) {
			long long offset = atoll(argv[j]) * 1000000000LL;
			if (got >= before + offset - grain && got <= after + offset)
				break;
		}
		if (argc > 2 && j == argc) {
			printf("round %d: the wall clock is off by %lld ns\n", i, got - before);
			return 1;
		}
		if (!seen[j]++)
			all++;
		for (j = 0; j < 4; j++) {
			clock_gettime(spans[j], &t);
			if (ns(t) < last[j]) {
				printf("round %d: clock %d went back by %lld ns\n", i, (int)spans[j], last[j] - ns(t));
				return 1;
			}
			last[j] = ns(t);
		}
	}
	printf("saw %d offsets\n", all);
	return 0;
}
