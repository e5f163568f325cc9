package main_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// BenchmarkRun runs the built program, start and workers included, on growing
// parts of the matrix: time should grow with the cells, memory should not.
func BenchmarkRun(b *testing.B) {
	dir := b.TempDir()
	program := filepath.Join(dir, "lockfault")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(program, "list", "scenarios").Output()
	if err != nil {
		b.Fatal(err)
	}
	var scenarios []string
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n")[1:] {
		scenarios = append(scenarios, strings.Fields(line)[0])
	}
	for _, part := range []int{len(scenarios) / 4, len(scenarios) / 2, len(scenarios)} {
		b.Run(strconv.Itoa(part)+"-scenarios", func(b *testing.B) {
			cells, memory := 0, int64(0)
			for b.Loop() {
				report := filepath.Join(dir, "report")
				run := exec.Command(program, "run", "--out", report, "--scenario", strings.Join(spread(scenarios, part), ","))
				var stderr bytes.Buffer
				run.Stderr = &stderr
				if err := run.Run(); err != nil {
					b.Fatalf("%v\n%s", err, &stderr)
				}
				memory = max(memory, run.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
				cells += played(b, filepath.Join(report, "results.json"))
			}
			b.ReportMetric(float64(cells)/float64(b.N), "cells")
			b.ReportMetric(float64(cells)/b.Elapsed().Seconds(), "cells/s")
			b.ReportMetric(float64(memory)/1024, "MB-largest-process")
		})
	}
}

// spread picks n of the words, evenly: expensive scenarios stand together.
func spread(words []string, n int) (some []string) {
	for i := range n {
		some = append(some, words[i*len(words)/n])
	}
	return some
}

// played counts the cells that were played.
func played(b *testing.B, file string) (n int) {
	data, err := os.ReadFile(file)
	if err != nil {
		b.Fatal(err)
	}
	var results struct {
		Cells []struct{ Verdict string }
	}
	if err := json.Unmarshal(data, &results); err != nil {
		b.Fatal(err)
	}
	for _, cell := range results.Cells {
		if cell.Verdict != "not-applicable" {
			n++
		}
	}
	return n
}
