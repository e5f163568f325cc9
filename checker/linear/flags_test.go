package linear

import (
	"cmp"
	"flag"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Flags of the tests that compare the checker with the oracle or with porcupine. Each test uses its
// own default for a number that is 0 and for a text that is empty.
var (
	historiesFlag     = flag.Uint("histories", 0, "`number` of random histories of each kind (default 0: the test's own number)")
	seedFlag          = flag.Uint64("seed", 0, "`seed` of the random histories (default 0: the test's own seed, or a random seed)")
	seedsFlag         = flag.Uint("seeds", 0, "`number` of seeds that TestRarelyUnknown uses, from -seed on (default 0: 1 seed)")
	specFlag          = flag.String("spec", "", "`part` of the names of the specifications to test (default empty: all specifications)")
	judgeFlag         = flag.String("judge", "", "`part` of the name of the judge that TestRandom compares with the oracle, descent or Check (default empty: both)")
	opsFlag           = flag.Uint("ops", 0, "`number` of operations in each history of TestSlowVersus and TestRarelyUnknown (default 0: the test's own number)")
	patienceFlag      = flag.Duration("patience", time.Second, "`time` limit of porcupine for each history of TestSlowVersus")
	statesFlag        = flag.Uint("states", 0, "`number` of simultaneous states above which TestRandom skips a history (default 0: no limit)")
	disagreementsFlag = flag.String("disagreements", "", "`file` to which TestRandom appends disagreements, relative to the package (default empty: no file)")
	sizesFlag         = flag.String("sizes", "", "largest numbers of events, `TWO,THREE`, of the histories of two and of three clients in TestEnumerate (default empty: 5,4)")
	descentsFlag      = flag.String("descents", "", "largest numbers of events, `TWO,THREE`, of the histories whose descents TestEnumerate compares (default empty: the value of -sizes)")
	partFlag          = flag.String("part", "", "part I of N, `I/N`, of the histories of TestEnumerate, 0 <= I < N (default empty: all, and a random eighth of the histories of several keys if -sizes is empty)")
)

// seedOrRandom returns the value of -seed, or a random seed if the value is 0, and logs the flag
// that repeats the test.
func seedOrRandom(t testing.TB) uint64 {
	t.Helper()
	seed := cmp.Or(*seedFlag, 1+rand.Uint64N(1e9))
	t.Logf("-seed %d", seed)
	return seed
}

// sizesOr returns the two numbers of events in the value of a flag, or unless if the value is empty.
func sizesOr(t testing.TB, name, value string, unless [2]int) [2]int {
	t.Helper()
	if value == "" {
		return unless
	}
	two, three, _ := strings.Cut(value, ",")
	a, errA := strconv.Atoi(two)
	b, errB := strconv.Atoi(three)
	if errA != nil || errB != nil || a < 1 || b < 1 {
		t.Fatalf("invalid -%s %s: must be two numbers of at least 1, such as 8,7", name, value)
	}
	return [2]int{a, b}
}

// partOf returns the numbers in the value of -part, or zeros if the value is empty.
func partOf(t testing.TB, value string) (i, n int) {
	t.Helper()
	if value == "" {
		return 0, 0
	}
	first, second, _ := strings.Cut(value, "/")
	i, errI := strconv.Atoi(first)
	n, errN := strconv.Atoi(second)
	if errI != nil || errN != nil || i < 0 || i >= n {
		t.Fatalf("invalid -part %s: must be I/N with 0 <= I < N, such as 0/40", value)
	}
	return i, n
}
