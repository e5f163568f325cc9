package histories_test

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/lockfault/lockfault/checker/linear"
	"github.com/lockfault/lockfault/histories"
)

var operations = flag.Int("operations", 100_000, "how many operations the histories of the benchmarks have")

// generate writes a legal history of a mutex: ten clients that take turns, two
// events an operation.
func generate(b *testing.B, format histories.Format, operations int) string {
	name := filepath.Join(b.TempDir(), "history")
	f, err := os.Create(name)
	if err != nil {
		b.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<16)
	switch format {
	case histories.JSONLines:
		fmt.Fprintln(w, `{"lockfault":1,"strategy":"s","scenario":"c","world":"sim","seed":1,"clients":["A"],"nodes":["n1"],"ttl":1,"grace":1,"bound":1}`)
	case histories.CSV:
		fmt.Fprintln(w, "time,client,event,result")
	}
	for i := range operations {
		client, op, t := i/2%10, [...]string{"acquire", "release"}[i%2], 1000*i
		switch format {
		case histories.JSONLines:
			fmt.Fprintf(w, `{"i":%d,"t":%d,"kind":"invoke","client":"C%d","op":"%s","call":%d}`+"\n", 2*i, t, client, op, i+1)
			fmt.Fprintf(w, `{"i":%d,"t":%d,"kind":"return","client":"C%d","op":"%s","call":%d,"result":"ok"}`+"\n", 2*i+1, t+500, client, op, i+1)
		case histories.EDN:
			fmt.Fprintf(w, "{:index %d, :time %d, :type :invoke, :process %d, :f :%s, :value nil}\n", 2*i, t, client, op)
			fmt.Fprintf(w, "{:index %d, :time %d, :type :ok, :process %d, :f :%s, :value nil}\n", 2*i+1, t+500, client, op)
		case histories.CSV:
			fmt.Fprintf(w, "%d,C%d,%s,call\n%d,C%d,%s,ok\n", t, client, op, t+500, client, op)
		}
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	return name
}

// BenchmarkCheck reads a file and judges it, on one core, without ever having all
// of it in memory; memory-MB is what the process has got from the system.
//
//	go test ./histories -run '^$' -bench Check/jsonl -benchtime 1x -cpu 1 -operations 10000000
func BenchmarkCheck(b *testing.B) {
	for _, format := range histories.Formats() {
		b.Run(string(format), func(b *testing.B) {
			name := generate(b, format, *operations)
			for b.Loop() {
				f, err := os.Open(name)
				if err != nil {
					b.Fatal(err)
				}
				checker := linear.New(linear.Mutex(), linear.Options{})
				for e, err := range histories.New(f, histories.Options{Name: name}).Events() {
					if err == nil {
						err = checker.Add(e)
					}
					if err != nil {
						b.Fatal(err)
					}
				}
				f.Close()
				if r := checker.Result(); r.Verdict != linear.Valid || r.Ops != *operations {
					b.Fatalf("%s, %d operations", r.Verdict, r.Ops)
				}
			}
			b.ReportMetric(float64(*operations)*float64(b.N)/b.Elapsed().Seconds(), "ops/s")
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			b.ReportMetric(float64(m.Sys)/1e6, "memory-MB")
		})
	}
}

// BenchmarkRead only reads.
func BenchmarkRead(b *testing.B) {
	for _, format := range histories.Formats() {
		b.Run(string(format), func(b *testing.B) {
			name := generate(b, format, *operations)
			for b.Loop() {
				f, err := os.Open(name)
				if err != nil {
					b.Fatal(err)
				}
				n := 0
				for _, err := range histories.New(f, histories.Options{Name: name}).Events() {
					if err != nil {
						b.Fatal(err)
					}
					n++
				}
				f.Close()
				if n != 2**operations {
					b.Fatalf("%d events", n)
				}
			}
			b.ReportMetric(float64(*operations)*float64(b.N)/b.Elapsed().Seconds(), "ops/s")
		})
	}
}
