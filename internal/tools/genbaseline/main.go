// Command genbaseline prints the standard results that are embedded in the program: what the
// strategies of the library show under its scenarios. The command reads the results of a complete
// run; make matrix runs both.
//
//	lockfault run && go run ./internal/tools/genbaseline lockfault-report/results.json >reports/standard.json
//
// The exit status is 0, 2 for a wrong command line, or 3 if the results cannot be read or belong to
// another run.
package main

import (
	"fmt"
	"os"

	"github.com/lockfault/lockfault/reports"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: genbaseline RESULTS.JSON")
		os.Exit(2)
	}
	if err := reports.Standard(os.Stdout, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "standard:", err)
		os.Exit(3)
	}
}
