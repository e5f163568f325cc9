// Command knownbugs plays known defects of other people's lock libraries and prints the page
// docs/track-record.md. Each defect is played in virtual time and on redis-server processes, with
// and without the option that cures it.
//
//	go run ./internal/tools/knownbugs -lockfault bin/trackrecord >docs/track-record.md
//
// The program that it runs is built from examples/knownbugs: lockfault with these libraries. The
// exit status is 0, or 3 if a script could not be played. Temporary files are removed.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"strings"
)

// attempts is the number of times that scripts without a verdict are played again.
const attempts = 5

// module is the directory of the program's source, with its scripts and go.mod, relative to the
// root of the repository.
const module = "examples/knownbugs"

func main() {
	program := flag.String("lockfault", "bin/trackrecord", "the program of "+module+", built")
	flag.Parse()
	if err := run(*program); err != nil {
		fmt.Fprintln(os.Stderr, "knownbugs:", err)
		os.Exit(3)
	}
}

func run(program string) error {
	versions, err := readVersions(module)
	if err != nil {
		return err
	}
	played, err := play(program, module, "sim,process", names())
	if err != nil {
		return err
	}
	// Play only undecided scripts again: unexpected verdicts are what the page reports.
	for again := 0; len(undecided(played)) > 0; again++ {
		scripts := undecided(played)
		if again == attempts {
			return fmt.Errorf("no verdict in %d attempts: %s", 1+attempts, strings.Join(scripts, ", "))
		}
		more, err := play(program, module, "sim,process", scripts)
		if err != nil {
			return err
		}
		maps.Copy(played, more)
	}
	text, err := page(records(), versions, played)
	if err != nil {
		return err
	}
	_, err = fmt.Print(text)
	return err
}
