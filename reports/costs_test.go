package reports_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/reports"
)

func someCosts() reports.Costs {
	cost := func(strategy string, contenders int, path string, rate float64, p50, p99 time.Duration, direct, toxiproxy float64) reports.Cost {
		return reports.Cost{
			Strategy: strategy, Contenders: contenders, Path: path, PairsPerSecond: rate, P50: p50, P99: p99, Pairs: int(2 * rate),
			Busiest: 1, OverDirect: direct, OverToxiproxy: toxiproxy,
		}
	}
	list := []reports.Cost{
		cost("set-nx-px-lua", 1, reports.PathDirect, 8123.4, 112*time.Microsecond, 310*time.Microsecond, 1, 0.5),
		cost("set-nx-px-lua", 1, reports.PathToxiproxy, 4061.7, 230*time.Microsecond, 700*time.Microsecond, 2, 1),
		cost("set-nx-px-lua", 1, reports.PathGate, 3481.4, 270*time.Microsecond, 1230*time.Microsecond, 2.333, 1.166),
		cost("set-nx-px-lua", 1, reports.PathRecorded, 812, time.Millisecond, 4*time.Millisecond, 10, 5),
		cost("redlock", 1, reports.PathDirect, 900, time.Millisecond, 2*time.Millisecond, 1, 0.5),
		cost("redlock", 1, reports.PathGate, 300, 3*time.Millisecond, 5*time.Millisecond, 3, 1.5),
		cost("set-nx-px-lua", 8, reports.PathDirect, 40, 151*time.Millisecond, 1300*time.Millisecond, 1, 1),
		cost("set-nx-px-lua", 8, reports.PathGate, 0, 0, 0, 0, 0),
	}
	list[6].Busiest, list[7].Failures = 0.333, 12
	return reports.Costs{
		Version: "v1", Server: "Redis 7.0.15", Platform: "go1.26 on linux/amd64, 2 processors", Time: 2 * time.Second, List: list,
	}
}

func TestCosts(t *testing.T) {
	var table, page, plot bytes.Buffer
	costs := someCosts()
	for _, err := range []error{costs.Table(&table), costs.Markdown(&page, "costs.svg"), costs.Plot(&plot)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "costs.txt", table.String())
	golden(t, "costs.md", page.String())
	golden(t, "costs.svg", plot.String())

	costs.Interrupted = true
	table.Reset()
	page.Reset()
	if err := errors.Join(costs.Table(&table), costs.Markdown(&page, "")); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(table.String(), "interrupted") || !strings.Contains(page.String(), "interrupted") || strings.Contains(page.String(), "![") {
		t.Errorf("an interrupted run, without a plot:\n%s\n%s", &table, &page)
	}
}

func TestCostsAsJSON(t *testing.T) {
	costs := someCosts()
	var b bytes.Buffer
	if err := costs.JSON(&b); err != nil {
		t.Fatal(err)
	}
	var got reports.Costs
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	costs.Tool = reports.Tool
	if !reflect.DeepEqual(got, costs) {
		t.Errorf("got %+v, want %+v", got, costs)
	}
}

// A plot of whatever there is is well-formed, with numbers that are some.
func TestCostPlotOfAnything(t *testing.T) {
	odd := someCosts()
	odd.List = odd.List[7:]
	odd.List[0].Strategy = `<&"`
	for _, costs := range []reports.Costs{{}, odd} {
		var b bytes.Buffer
		if err := costs.Plot(&b); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
			t.Errorf("not a number:\n%s", text)
		}
		for d := xml.NewDecoder(&b); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%v:\n%s", err, text)
			}
		}
	}
}
