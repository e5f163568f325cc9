// Command trackrecord plays what is known to be wrong with other people's lock libraries,
// in virtual time and on redis-server processes, with the option that cures it and
// without, and prints the page docs/track-record.md.
//
//	go run ./internal/tools/knownbugs -lockfault bin/trackrecord >docs/track-record.md
//
// The program that it runs is lockfault with these libraries, examples/knownbugs, built.
//
// It exits with 0, or with 3 if something could not be played. Nothing is left of it.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"strings"
)

// attempts is how often a script is played again on which the machine was too slow.
const attempts = 5

// module is the directory of the program's source, in which its scripts and the versions
// of the libraries are, as seen from the repository's root.
const module = "examples/knownbugs"

func main() {
	program := flag.String("lockfault", "bin/trackrecord", "the program of "+module+", built")
	flag.Parse()
	if err := run(*program); err != nil {
		fmt.Fprintln(os.Stderr, "trackrecord:", err)
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
	// Only what came to no verdict is played again: what came out otherwise than expected
	// is what the page has to say.
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
