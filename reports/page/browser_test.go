package page_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/reports"
)

// report writes a report of a few cells, with one that differs from its expectation, and returns
// the page's address. The cells' names are harmless unless the caller gives others.
func report(t *testing.T, strategies ...string) string {
	t.Helper()
	if len(strategies) == 0 {
		strategies = []string{"redlock", "set-nx-px"}
	}
	scenarios := []string{"contention", "gc-pause"}
	dir := t.TempDir()
	head := reports.Head{Version: "v0.1.0", World: "sim", Seed: 7, Machine: "linux/amd64", Command: []string{"lockfault", "run"}}
	head.Scripts = []reports.Script{
		reports.NewScript("contention", "", "# Two want it.\n\nclients A B\n\nA acquire\n"),
		reports.NewScript("gc-pause", "", "# A stands still.\n\nclients A B\n\nA acquire\nA pause\nwait 1.1ttl\nB acquire\n"),
	}
	r, err := reports.Create(dir, head, reports.Plan{Cells: len(strategies) * len(scenarios)})
	if err != nil {
		t.Fatal(err)
	}
	for i, scenario := range scenarios {
		for k, strategy := range strategies {
			c := reports.Cell{World: "sim", Strategy: strategy, Scenario: scenario, Verdict: reports.Held, Nodes: 1, Linearizable: true,
				History: fmt.Sprintf("histories/sim/s%d/%s.jsonl", k, scenario)}
			if scenario == "gc-pause" {
				c.Verdict, c.Linearizable = reports.Violated, false
				c.Anomalies, c.Expected = []checker.Anomaly{checker.Overlap}, []checker.Anomaly{checker.Overlap}
				c.Witnesses = []checker.Witness{{Anomaly: checker.Overlap, Events: []int{2, 7}, Message: "B acquired while A still held it."}}
				if k == 0 {
					c.Expected = nil
				}
			}
			c.Settle()
			if err := reports.WriteHistory(r.Dir(), c.History, history(strategy, scenario, time.Duration(k)*time.Second)); err != nil {
				t.Fatal(err)
			}
			if err := r.Add(i*len(strategies)+k, c); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return (&url.URL{Scheme: "file", Path: filepath.Join(dir, reports.HTMLFile)}).String()
}

// history returns a history in which A is paused while B acquires, the given time after the lease.
func history(strategy, scenario string, after time.Duration) checker.History {
	h := checker.History{Meta: checker.Meta{Format: 1, World: "sim", Strategy: strategy, Scenario: scenario, TTL: 30 * time.Second,
		Clients: []string{"A", "B"}, Nodes: []string{"n1"}}}
	at := func(d time.Duration, e checker.Event) {
		e.Index, e.Time = len(h.Events), d
		h.Events = append(h.Events, e)
	}
	at(0, checker.Event{Kind: checker.Invoke, Client: "A", Op: checker.Acquire, Call: 1})
	at(time.Millisecond, checker.Event{Kind: checker.State, Client: "A", Node: "n1", Owner: "A", Value: "A1", Expires: 30 * time.Second, Cause: checker.ByCommand})
	at(2*time.Millisecond, checker.Event{Kind: checker.Return, Client: "A", Op: checker.Acquire, Call: 1, Result: checker.OK})
	at(3*time.Millisecond, checker.Event{Kind: checker.Pause, Client: "A"})
	at(30*time.Second, checker.Event{Kind: checker.State, Node: "n1", Cause: checker.ByExpiry})
	at(after+33*time.Second, checker.Event{Kind: checker.Invoke, Client: "B", Op: checker.Acquire, Call: 2})
	at(after+33*time.Second+time.Millisecond, checker.Event{Kind: checker.State, Client: "B", Node: "n1", Owner: "B", Value: "B1", Expires: 63 * time.Second, Cause: checker.ByCommand})
	at(after+33*time.Second+2*time.Millisecond, checker.Event{Kind: checker.Return, Client: "B", Op: checker.Acquire, Call: 2, Result: checker.OK})
	at(after+33*time.Second+3*time.Millisecond, checker.Event{Kind: checker.Write, Client: "B", Accepted: true})
	at(after+33500*time.Millisecond, checker.Event{Kind: checker.Request, Client: "B", Node: "n1", Command: "GET lock", Sent: after + 33499*time.Millisecond})
	at(after+34*time.Second, checker.Event{Kind: checker.Invoke, Client: "C", Op: checker.Acquire, Call: 3})
	at(after+34*time.Second, checker.Event{Kind: checker.Return, Client: "C", Op: checker.Acquire, Call: 3, Result: checker.OK})
	at(after+34*time.Second, checker.Event{Kind: checker.End})
	return h
}

// A browser shows a page, and records requests and errors of the page.
type browser struct {
	*testing.T
	ctx  context.Context
	mu   sync.Mutex
	said []string
}

// browse opens a page in a new browser.
func browse(t *testing.T, address string, width, height int64) *browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("there is no chromium: install it (apt-get install chromium), .ci/viewers does")
	}
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(path), chromedp.Headless, chromedp.NoFirstRun}
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(ctx)
	t.Cleanup(end)
	b := &browser{T: t, ctx: ctx}
	file, _, _ := strings.Cut(address, "#")
	b.do(chromedp.EmulateViewport(width, height))
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	b.must(err)
	_, err = chromedp.Call(ctx, runtime.Enable, struct{}{})
	b.must(err)
	b.must(chromedp.Listen(ctx, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			if !strings.HasPrefix(e.Request.URL, "data:") && !strings.HasPrefix(e.Request.URL, file) {
				b.said = append(b.said, "it asks for "+e.Request.URL)
			}
		case *runtime.EventConsoleAPICalled:
			b.said = append(b.said, fmt.Sprintf("the console says %v", e.Type))
		case *runtime.EventExceptionThrown:
			b.said = append(b.said, "it throws "+e.ExceptionDetails.Text)
		}
	}))
	b.do(chromedp.Navigate(address))
	return b
}

func (b *browser) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	if chromedp.FromContext(b.ctx).Target == nil {
		ctx = b.ctx // the first step starts the browser, which ends with its context
	}
	b.must(chromedp.Do(ctx, steps...))
}

// eval returns the value of an expression.
func eval[V any](b *browser, expression string) V {
	b.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[V](expression))
	b.must(err)
	return v
}

// expect fails the test unless an expression is true.
func (b *browser) expect(says, expression string) {
	b.Helper()
	if !eval[bool](b, expression) {
		b.Errorf("not so: %s (%s); the address is %s", says, expression, eval[string](b, "location.href"))
	}
}

// quiet fails the test if the page has made a request or reported an error.
func (b *browser) quiet() {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, text := range b.said {
		b.Error(text)
	}
}

const open = `[...document.querySelectorAll('article')].filter(a => a.offsetHeight).map(a => a.id).join()`

func TestPageInABrowser(t *testing.T) {
	address := report(t)
	b := browse(t, address, 1280, 900)
	b.expect("no story is open", open+` === ''`)
	b.expect("what is unexpected comes first", `document.querySelector('main section').id === 'unexpected'`)
	b.expect("the unexpected one is named", `document.querySelector('#unexpected li').textContent.endsWith(': redlock under gc-pause')`)

	b.do(chromedp.SetValue(chromedp.CSS("#f-anomaly"), "overlap"))
	b.do(chromedp.Evaluate[chromedp.Void](`document.getElementById('f-anomaly').dispatchEvent(new Event('input'))`))
	b.expect("rows without an overlap are gone", `document.querySelector('tr[data-s=contention]').offsetHeight === 0 && document.querySelector('tr[data-s=gc-pause]').offsetHeight > 0`)
	b.expect("the address has the filter", `location.hash.includes('anomaly=overlap')`)
	b.expect("the count says so", `document.getElementById('f-count').textContent === '2 cells'`)

	b.do(chromedp.Click(chromedp.CSS(`a[aria-label^="set-nx-px under gc-pause"]`)))
	b.expect("its story is open, and no other", open+` === 'set-nx-px/gc-pause'`)
	b.expect("the address has cell and filter", `location.hash === '#set-nx-px/gc-pause?anomaly=overlap'`)
	b.do(chromedp.Click(chromedp.CSS(`article.open .proof a[href$="/7"]`)))
	b.expect("the event is marked", `document.querySelector('li.here').dataset.e === '7'`)
	b.expect("the address has cell, event and filter", `location.hash === '#set-nx-px/gc-pause/7?anomaly=overlap'`)

	// The address leads to the same state in another browser.
	link := eval[string](b, "location.href")
	other := browse(t, link, 1280, 900)
	other.expect("the story is open", open+` === 'set-nx-px/gc-pause'`)
	other.expect("the event is marked", `document.querySelector('li.here').dataset.e === '7'`)
	other.expect("the filter is set", `document.getElementById('f-anomaly').value === 'overlap'`)
	other.quiet()

	b.do(chromedp.KeyEvent("k"))
	b.expect("k leads to the story before", open+` === 'redlock/gc-pause'`)
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector('button[data-sort="1"]').click()`))
	b.expect("the strategies are sorted by name", `document.querySelector('#ranking tbody .name').textContent === 'redlock'`)
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector('button[data-sort="1"]').click()`))
	b.expect("and the other way round", `document.querySelector('#ranking tbody .name').textContent === 'set-nx-px'`)
	b.quiet()

	pdf, err := chromedp.Run(b.ctx, chromedp.PrintToPDF())
	b.must(err)
	if !strings.HasPrefix(string(pdf), "%PDF") || len(pdf) < 10_000 {
		t.Errorf("a PDF of %d bytes", len(pdf))
	}
	b.quiet()
}

// TestPageInTheDark checks that the page has a dark background and light text in dark mode.
func TestPageInTheDark(t *testing.T) {
	b := browse(t, report(t), 1280, 900)
	light := eval[string](b, `getComputedStyle(document.body).backgroundColor`)
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
	b.must(err)
	dark := eval[string](b, `getComputedStyle(document.body).backgroundColor`)
	if light != "rgb(255, 255, 255)" || dark != "rgb(13, 17, 23)" {
		t.Errorf("light it is %s, dark %s", light, dark)
	}
	b.expect("drawings are dark too", `getComputedStyle(document.querySelector('svg.lf')).fill !== 'rgb(27, 31, 36)'`)
	b.quiet()
}

// TestPageIsNarrow checks that nothing exceeds the width of a phone: wide elements scroll in their
// own box.
func TestPageIsNarrow(t *testing.T) {
	for _, width := range []int64{390, 1280} {
		b := browse(t, report(t)+"#redlock/gc-pause", width, 800)
		b.expect("nothing sticks out", `document.documentElement.scrollWidth <= innerWidth`)
		b.quiet()
	}
}

// TestPageHasNames checks that each control has a name for screen readers.
func TestPageHasNames(t *testing.T) {
	b := browse(t, report(t)+"#redlock/gc-pause", 1280, 900)
	tree, err := chromedp.Call(b.ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	b.must(err)
	controls, names := 0, map[string]bool{}
	for _, node := range tree.Nodes {
		if node.Ignored || node.Role == nil {
			continue
		}
		switch role := strings.Trim(string(node.Role.Value), `"`); role {
		case "button", "link", "combobox", "searchbox", "textbox", "region", "image", "img", "search", "navigation":
			controls++
			if node.Name != nil {
				names[role+" "+strings.Trim(string(node.Name.Value), `"`)] = true
			}
			if node.Name == nil || strings.Trim(string(node.Name.Value), `" `) == "" {
				t.Errorf("a %s has no name", role)
			}
		}
	}
	for _, want := range []string{"button zoom in (w)", "button zoom out (s)", "button the whole timeline (0)", "button pan to the left (a)", "button pan to the right (d)", "button pin lane A", "button pin lane resource"} {
		if !names[want] {
			t.Errorf("there is no %s", want)
		}
	}
	if controls < 20 {
		t.Errorf("%d controls and pictures, want more", controls)
	}
}

// TestPageWithoutScript checks that everything is readable without scripts.
func TestPageWithoutScript(t *testing.T) {
	b := browse(t, "about:blank", 1280, 900)
	_, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.must(err)
	address := report(t)
	b.do(chromedp.Navigate(address))
	text, err := chromedp.Run(b.ctx, chromedp.TextContent(chromedp.CSS("main")))
	b.must(err)
	for _, want := range []string{"redlock under contention", "set-nx-px under gc-pause", "B acquired while A still held it.", "A's process stopped", "wait 1.1ttl"} {
		if !strings.Contains(text, want) {
			t.Errorf("it doesn't say %q", want)
		}
	}
}

// TestPageOfHostileNames checks that names that look like HTML are shown as text.
func TestPageOfHostileNames(t *testing.T) {
	b := browse(t, report(t, `<script>console.error(1)</script>`, `"><img src="http://192.0.2.1/x" onerror="console.error(1)">`), 1280, 900)
	b.do(chromedp.Click(chromedp.CSS(`#unexpected a`)))
	b.expect("its story is open", open+` === 'cell-2'`)
	b.expect("its name is read", `document.querySelector('article.open h3').textContent.startsWith('<script>console')`)
	b.quiet()
}
