package page_test

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/reports"
)

// findings writes the page of a search that found these anomalies, and returns its address. The
// names are harmless unless the caller gives another.
func findings(t *testing.T, name string, list ...checker.Anomaly) string {
	t.Helper()
	f := reports.Findings{
		Strategy: name, Summary: "SET NX PX of " + name, Worlds: []string{"process"},
		Conclusions: []string{"Exhausted: there is no other anomaly within this bound (2 clients, 1 round, pause 1).", "It says nothing of " + name},
		Notes:       []string{"every move was played: " + name},
		Searched:    [][2]string{{"strategy", name}, {"clients", "2"}},
		Coverage:    [][2]string{{"states", "248 different ones"}},
		Provenance:  [][2]string{{"command", "lockfault explore " + name}},
		Failures:    []reports.Failed{{Script: "clients A # " + name + "\n", Err: "panic: " + name}},
	}
	for i, a := range list {
		c := reports.Cell{World: "sim", Strategy: name, Scenario: name, Verdict: reports.Violated, Nodes: 1, Anomalies: []checker.Anomaly{a}, Expected: []checker.Anomaly{a},
			Witnesses: []checker.Witness{{Anomaly: a, Events: []int{2, 7}, Message: "B acquired while A still held it."}}}
		c.Settle()
		f.List = append(f.List, reports.Found{Anomaly: a, Moves: 5 + i, Requests: 2, File: fmt.Sprintf("%s-%s.txt", name, a), Script: "# " + name + "\nclients A B\n\nA acquire\n\nexpect " + string(a) + "\n",
			Said: []string{"not reproduced"}, Cell: c, History: history(name, name, time.Duration(i)*time.Second)})
	}
	var b bytes.Buffer
	if err := reports.WriteFindings(&b, f); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), reports.HTMLFile)
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return (&url.URL{Scheme: "file", Path: file}).String()
}

func TestFindingsInABrowser(t *testing.T) {
	b := browse(t, findings(t, "set-nx-px", checker.Overlap, checker.StaleWrite, checker.Ghost), 1280, 900)
	b.expect("no story is open", open+` === ''`)
	b.expect("what it means comes first", `document.querySelector('header p b').textContent.startsWith('Exhausted:')`)
	b.expect("the table explains the anomaly", `document.querySelector('#findings tbody tr').textContent.includes('two clients believed')`)
	b.expect("what real servers don't show is red", `document.querySelector('#findings td .alarm').textContent === 'not reproduced'`)

	b.do(chromedp.Click(chromedp.CSS(`#findings a[href="#stale-write"]`)))
	b.expect("its story is open, and no other", open+` === 'stale-write'`)
	b.expect("its script is to be seen", `document.querySelector('article.open pre[data-lang]').offsetHeight > 0`)
	b.expect("its timeline is to be seen", `[...document.querySelectorAll('article.open svg.lf')].some(s => s.getBoundingClientRect().height > 50)`)
	b.do(chromedp.Click(chromedp.CSS(`article.open .proof a[href$="/7"]`)))
	b.expect("the event is marked", `document.querySelector('article.open li.here').dataset.e === '7'`)
	b.expect("the address has finding and event", `location.hash === '#stale-write/7'`)
	link := eval[string](b, "location.href")
	other := browse(t, link, 1280, 900)
	other.expect("who gets that address sees the same", open+` === 'stale-write' && document.querySelector('li.here').dataset.e === '7'`)
	other.quiet()

	b.do(chromedp.KeyEvent("j"))
	b.expect("j leads to the next", open+` === 'ghost'`)
	b.do(chromedp.KeyEvent("j"))
	b.expect("there is none behind the last", open+` === 'ghost'`)
	b.do(chromedp.KeyEvent("k"), chromedp.KeyEvent("k"))
	b.expect("k leads to the one before", open+` === 'overlap'`)
	b.do(chromedp.KeyEvent("/"))
	b.expect("there is no filter to go to", open+` === 'overlap'`)
	b.expect("the way back has a name", `document.querySelector('button[data-do=back]').textContent === 'back to the findings'`)
	b.do(chromedp.KeyEvent("\x1b"))
	b.expect("Esc leads back", open+` === '' && location.hash === '#findings'`)

	// As Markdown, the copied text is a script, not a diagram.
	b.do(chromedp.Click(chromedp.CSS(`#findings a[href="#overlap"]`)))
	b.do(chromedp.Evaluate[chromedp.Void](`Object.defineProperty(navigator, 'clipboard', {value: {writeText: t => { window.copied = t; return Promise.resolve(); }}})`))
	b.do(chromedp.Click(chromedp.CSS(`article.open button[data-do=copy]`)))
	b.expect("the story is Markdown", `window.copied.includes('`+"```mermaid"+`\nsequenceDiagram') && window.copied.includes('`+"```text"+`\n# set-nx-px')`)
	b.quiet()

	pdf, err := chromedp.Run(b.ctx, chromedp.PrintToPDF())
	b.must(err)
	if !strings.HasPrefix(string(pdf), "%PDF") || len(pdf) < 10_000 {
		t.Errorf("a PDF of %d bytes", len(pdf))
	}
	b.quiet()
}

// TestFindingsAreNarrowAndDark checks the width of a phone and dark mode, also for a page without
// findings.
func TestFindingsAreNarrowAndDark(t *testing.T) {
	for _, list := range [][]checker.Anomaly{{checker.Overlap}, nil} {
		b := browse(t, findings(t, strings.Repeat("a-long-name", 30), list...)+"#overlap", 390, 800)
		b.expect("nothing sticks out", `document.documentElement.scrollWidth <= innerWidth`)
		_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
		b.must(err)
		b.expect("it is dark", `getComputedStyle(document.body).backgroundColor === 'rgb(13, 17, 23)'`)
		b.quiet()
	}
}

// TestFindingsHaveNames checks that each control has a name for screen readers.
func TestFindingsHaveNames(t *testing.T) {
	b := browse(t, findings(t, "set-nx-px", checker.Overlap, checker.Ghost)+"#overlap", 1280, 900)
	tree, err := chromedp.Call(b.ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	b.must(err)
	controls := 0
	for _, node := range tree.Nodes {
		if node.Ignored || node.Role == nil {
			continue
		}
		switch role := strings.Trim(string(node.Role.Value), `"`); role {
		case "button", "link", "region", "image", "img", "navigation", "columnheader", "rowheader":
			controls++
			if node.Name == nil || strings.Trim(string(node.Name.Value), `" `) == "" {
				t.Errorf("a %s has no name", role)
			}
		}
	}
	if controls < 15 {
		t.Errorf("%d controls and pictures, want more", controls)
	}
}

// TestFindingsWithoutScript checks that everything is readable without scripts.
func TestFindingsWithoutScript(t *testing.T) {
	b := browse(t, "about:blank", 1280, 900)
	_, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.must(err)
	b.do(chromedp.Navigate(findings(t, "set-nx-px", checker.Overlap, checker.Ghost)))
	text, err := chromedp.Run(b.ctx, chromedp.TextContent(chromedp.CSS("main")))
	b.must(err)
	for _, want := range []string{"overlap, after 5 moves", "ghost, after 6 moves", "B acquired while A still held it.", "A's process stopped", "expect ghost", "lockfault trace set-nx-px ./set-nx-px-ghost.txt"} {
		if !strings.Contains(text, want) {
			t.Errorf("it doesn't say %q", want)
		}
	}
}

// TestFindingsOfHostileNames checks that names that look like HTML are shown as text.
func TestFindingsOfHostileNames(t *testing.T) {
	for _, name := range []string{`<script>console.error(1)</script>`, `"><img src="http://192.0.2.1/x" onerror="console.error(1)">`, "two\nlines</style></script><script>console.error(1)</script>"} {
		b := browse(t, findings(t, name, checker.Overlap), 1280, 900)
		b.do(chromedp.Click(chromedp.CSS(`#findings a[href="#overlap"]`)))
		b.expect("its story is open", open+` === 'overlap'`)
		b.expect("what had no verdict is told", `document.querySelector('#failures p').textContent.startsWith('panic: ')`)
		b.quiet()
	}
}
