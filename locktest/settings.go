package locktest

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

// Environment variables of the settings: see the package documentation.
const (
	envOut     = "LOCKFAULT_OUT"
	envAccept  = "LOCKFAULT_ACCEPT"
	envStory   = "LOCKFAULT_STORY"
	envIsolate = "LOCKFAULT_ISOLATE"
	envSeed    = "LOCKFAULT_SEED"
	envTimeout = "LOCKFAULT_TIMEOUT"
	envFor     = "LOCKFAULT_FOR"
)

// Flags defines a flag for each setting, such as -lockfault.out for LOCKFAULT_OUT. Call Flags
// before the flags are parsed: in TestMain, or where a package's variables are initialized. A flag
// sets the environment variable of this process.
func Flags(flags *flag.FlagSet) {
	for _, f := range []struct{ name, env, usage string }{
		{"out", envOut, "`directory` to write reports below"},
		{"seed", envSeed, "`number` that decides everything that is random"},
		{"timeout", envTimeout, "real `time` that one scenario may take, such as 60s"},
		{"for", envFor, "real `time` that one search may take, such as 10s"},
	} {
		flags.Func("lockfault."+f.name, f.usage, func(value string) error { return os.Setenv(f.env, value) })
	}
	for _, f := range []struct{ name, env, usage string }{
		{"accept", envAccept, "write what the lock shows now as what it may show from now on"},
		{"story", envStory, "tell whole stories"},
		{"isolate", envIsolate, "run each scenario in its own process, then all in one, and compare"},
	} {
		flags.BoolFunc("lockfault."+f.name, f.usage, func(value string) error { return os.Setenv(f.env, value) })
	}
}

// settings holds the values from the environment.
type settings struct {
	out                    string
	accept, story, isolate bool
	seed                   uint64
	timeout                time.Duration // of a scenario, in real time
	search                 time.Duration // of a search
}

// Default settings. A scenario takes milliseconds; under the race detector and on a busy machine a
// hundred times as long.
const (
	defaultSeed    = 1
	defaultTimeout = time.Minute
	defaultFor     = 10 * time.Second
	shortFor       = 2 * time.Second // with -short
)

// readSettings reads the environment.
func readSettings() (s settings, err error) {
	s = settings{out: os.Getenv(envOut), seed: defaultSeed, timeout: defaultTimeout, search: defaultFor}
	if testing.Short() {
		s.search = shortFor
	}
	for env, to := range map[string]*bool{envAccept: &s.accept, envStory: &s.story, envIsolate: &s.isolate} {
		if value := os.Getenv(env); value != "" {
			if *to, err = strconv.ParseBool(value); err != nil {
				return s, fmt.Errorf("%s=%s: it is switched on by 1, and off by 0", env, value)
			}
		}
	}
	for env, to := range map[string]*time.Duration{envTimeout: &s.timeout, envFor: &s.search} {
		if value := os.Getenv(env); value != "" {
			if *to, err = time.ParseDuration(value); err != nil || *to <= 0 {
				return s, fmt.Errorf("%s=%s is no time: give one such as 30s", env, value)
			}
		}
	}
	if value := os.Getenv(envSeed); value != "" {
		if s.seed, err = strconv.ParseUint(value, 10, 64); err != nil {
			return s, fmt.Errorf("%s=%s is no seed: give a whole number, from 0 on", envSeed, value)
		}
	}
	return s, nil
}

// limit returns the limit of a scenario's real time. The limit leaves time before go test's
// deadline, which would end the process and lose its results.
func (s settings) limit(t *testing.T) time.Duration {
	if deadline, ok := t.Deadline(); ok {
		return max(min(s.timeout, time.Until(deadline)/2), time.Millisecond)
	}
	return s.timeout
}
