/*
 * A clock for one process, loaded into it with LD_PRELOAD.
 *
 * It answers clock_gettime, gettimeofday and time with the kernel's time,
 * moved as a shared page of memory says. LOCKFAULT_CLOCK names the page's file;
 * without one, time is true. The page's writer is ../file_linux.go.
 *
 * It makes its system calls itself and calls nobody: the C library's own
 * functions would come back here, and an allocator that asks for the time while
 * it allocates would never return. So it needs no header and no library either,
 * and one build serves processes of every C library.
 */

typedef long long i64; /* 64 bits wherever this compiles */
typedef unsigned long long u64;
typedef __int128 i128;

struct timespec64 { i64 sec, nsec; };
struct timeval64 { i64 sec, usec; };

/* The page. The writer fills the slot that is not in use, then counts up. */
struct slot {
	i64 since;  /* CLOCK_MONOTONIC when it was written, in ns; so is the rest */
	i64 wall;   /* CLOCK_REALTIME at that moment */
	i64 slept;  /* CLOCK_BOOTTIME less CLOCK_MONOTONIC */
	i64 offset; /* of the wall clocks at that moment */
	i64 warp;   /* of the clocks that measure spans at that moment */
	i64 drift;  /* gained per ns of true time since, in 1/2^32 ns */
	i64 spare[2];
};
struct page {
	u64 magic;
	u64 generation; /* its lowest bit is the slot in use */
	u64 loaded;     /* 1 once a process has this page */
	u64 spare[5];
	struct slot slots[2];
};
#define MAGIC 0x314b434f4c43464cULL /* "LFCLOCK1" */

#if defined(__x86_64__)
enum { sys_mmap = 9, sys_close = 3, sys_clock_gettime = 228, sys_openat = 257 };
static long call(long n, long a, long b, long c, long d, long e, long f) {
	long result;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	__asm__ volatile("syscall"
		: "=a"(result)
		: "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
		: "rcx", "r11", "memory");
	return result;
}
#elif defined(__aarch64__)
enum { sys_mmap = 222, sys_close = 57, sys_clock_gettime = 113, sys_openat = 56 };
static long call(long n, long a, long b, long c, long d, long e, long f) {
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;
	__asm__ volatile("svc 0"
		: "+r"(x0)
		: "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
		: "memory");
	return x0;
}
#else
#error "the clock shim knows x86_64 and aarch64 only"
#endif

/* The C library's, if it is there yet. */
extern char **environ __attribute__((weak));
extern int *__errno_location(void) __attribute__((weak));

static struct page none; /* true time */
static struct page *found;

static const char *setting(const char *name) {
	char **entry;
	int i;
	for (entry = environ; *entry; entry++) {
		for (i = 0; name[i] && (*entry)[i] == name[i]; i++)
			;
		if (!name[i] && (*entry)[i] == '=')
			return *entry + i + 1;
	}
	return 0;
}

/* Two threads may both come here: each maps the same page, and one stays. */
static struct page *find(void) {
	enum { at_cwd = -100, rdwr_cloexec = 02000002, read_write = 3, shared = 1 };
	struct page *page = &none;
	const char *file;
	long fd, address;
	if (!&environ || !environ)
		return page; /* too early; ask again */
	file = setting("LOCKFAULT_CLOCK");
	if (file && (fd = call(sys_openat, at_cwd, (long)file, rdwr_cloexec, 0, 0, 0)) >= 0) {
		address = call(sys_mmap, 0, sizeof none, read_write, shared, fd, 0);
		call(sys_close, fd, 0, 0, 0, 0, 0);
		if ((address > 0 || address < -4095) && ((struct page *)address)->magic == MAGIC)
			page = (struct page *)address;
	}
	if (page != &none)
		__atomic_store_n(&page->loaded, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&found, page, __ATOMIC_RELEASE);
	return page;
}

static struct page *get(void) {
	struct page *page = __atomic_load_n(&found, __ATOMIC_ACQUIRE);
	return page ? page : find();
}

static struct slot in_force(const struct page *page) {
	struct slot slot;
	u64 generation;
	do {
		const struct slot *from;
		generation = __atomic_load_n(&page->generation, __ATOMIC_ACQUIRE);
		from = &page->slots[generation & 1];
		slot.since = __atomic_load_n(&from->since, __ATOMIC_RELAXED);
		slot.wall = __atomic_load_n(&from->wall, __ATOMIC_RELAXED);
		slot.slept = __atomic_load_n(&from->slept, __ATOMIC_RELAXED);
		slot.offset = __atomic_load_n(&from->offset, __ATOMIC_RELAXED);
		slot.warp = __atomic_load_n(&from->warp, __ATOMIC_RELAXED);
		slot.drift = __atomic_load_n(&from->drift, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (generation != __atomic_load_n(&page->generation, __ATOMIC_RELAXED));
	return slot;
}

enum { second = 1000000000, realtime = 0, monotonic = 1 };

static long true_time(long clock, struct timespec64 *t) {
	return call(sys_clock_gettime, clock, (long)t, 0, 0, 0, 0);
}

static i64 true_ns(long clock) {
	struct timespec64 t;
	true_time(clock, &t); /* these two don't fail */
	return t.sec * second + t.nsec;
}

/*
 * forward keeps spans from going back in the microsecond in which the writer
 * slows a clock down that somebody reads. Each thread sees its own readings in
 * order; that is all that it is for, and needs no more than this.
 */
static i64 forward(i64 ns) {
	static i64 last;
	i64 before = __atomic_load_n(&last, __ATOMIC_RELAXED);
	if (ns < before)
		return before;
	__atomic_store_n(&last, ns, __ATOMIC_RELAXED);
	return ns;
}

/*
 * A clock that drifts is counted on from the slot by one reading of one clock.
 * With two, a pause between them would set it back where it runs slow.
 */
static long moved_time(long clock, struct timespec64 *t) {
	const struct page *page = get();
	struct slot slot;
	i64 ns, passed, gain = 0;
	int wall;
	switch (clock) {
	case 0: case 5: case 8: case 11: /* real, coarse, alarm, TAI */
		wall = 1;
		break;
	case 1: case 4: case 6: case 7: case 9: /* monotonic, raw, coarse, boot, alarm */
		wall = 0;
		break;
	default: /* processors' clocks, and what is no clock */
		return true_time(clock, t);
	}
	if (page == &none)
		return true_time(clock, t);
	slot = in_force(page);
	if (wall && !slot.drift) {
		ns = true_ns(realtime) + slot.offset;
	} else {
		passed = true_ns(monotonic) - slot.since;
		gain = (i64)((i128)passed * slot.drift >> 32);
		if (wall)
			ns = slot.wall + slot.offset + passed + gain;
		else
			ns = forward(slot.since + slot.warp + passed + gain);
		if (clock == 7 || clock == 9)
			ns += slot.slept;
	}
	if (ns < 0)
		ns = 0;
	t->sec = ns / second;
	t->nsec = ns % second;
	return 0;
}

__attribute__((visibility("default"))) int clock_gettime(int clock, struct timespec64 *t) {
	struct timespec64 answer;
	long error = moved_time(clock, &answer);
	if (error) {
		if (&__errno_location)
			*__errno_location() = (int)-error;
		return -1;
	}
	*t = answer;
	return 0;
}

__attribute__((visibility("default"))) int gettimeofday(struct timeval64 *t, void *zone) {
	struct timespec64 answer;
	(void)zone; /* obsolete: nobody asks for it */
	moved_time(0, &answer);
	if (t) {
		t->sec = answer.sec;
		t->usec = answer.nsec / 1000;
	}
	return 0;
}

__attribute__((visibility("default"))) i64 time(i64 *t) {
	struct timespec64 answer;
	moved_time(0, &answer);
	if (t)
		*t = answer.sec;
	return answer.sec;
}

__attribute__((constructor)) static void load(void) {
	get();
}
