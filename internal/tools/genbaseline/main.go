// Command standard prints what comes with the program as the standard: what the strategies of the
// library show under its scenarios, of the results of a run of all of them.
//
//	lockfault run && go run ./internal/tools/genbaseline lockfault-report/results.json >reports/standard.json
//
// make matrix does it. It exits with 0, or with 3 if the results can't be read or are of something else.
package main

import (
	"fmt"
	"os"

	"github.com/lockfault/lockfault/reports"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: standard RESULTS.JSON")
		os.Exit(2)
	}
	if err := reports.Standard(os.Stdout, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "standard:", err)
		os.Exit(3)
	}
}
