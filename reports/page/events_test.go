package page_test

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/reports"
)

// longName is a client's name that is longer than there is room for.
const longName = "a-client-with-a-long-name"

// long writes the page of a story that is longer than its picture: A acquires, the other client
// asks repeatedly, and A holds the lock while many other events happen.
func long(t *testing.T) string {
	t.Helper()
	h := checker.History{Meta: checker.Meta{Format: 1, World: "sim", Strategy: "x", Scenario: "y", TTL: 30 * time.Second, Clients: []string{"A", longName}, Nodes: []string{"n1"}}}
	now := time.Duration(0)
	add := func(later time.Duration, e checker.Event) {
		now += later
		e.Index, e.Time = len(h.Events), now
		h.Events = append(h.Events, e)
	}
	ask := func(client, command, reply string) {
		add(time.Millisecond, checker.Event{Kind: checker.Request, Client: client, Node: "n1", Command: command, Sent: now})
		add(time.Millisecond, checker.Event{Kind: checker.Reply, Client: client, Node: "n1", Command: command, Reply: reply, Sent: now})
	}
	add(0, checker.Event{Kind: checker.Invoke, Client: "A", Op: checker.Acquire, Call: 1})
	add(time.Millisecond, checker.Event{Kind: checker.Request, Client: "A", Node: "n1", Command: "SET lock A1"})
	add(0, checker.Event{Kind: checker.State, Client: "A", Node: "n1", Owner: "A", Value: "A1", Expires: 30 * time.Second, Cause: checker.ByCommand})
	add(time.Millisecond, checker.Event{Kind: checker.Reply, Client: "A", Node: "n1", Command: "SET lock A1", Reply: "OK", Sent: now})
	add(0, checker.Event{Kind: checker.Return, Client: "A", Op: checker.Acquire, Call: 1, Result: checker.OK})
	add(time.Millisecond, checker.Event{Kind: checker.Fault, Text: "hold A messages or none"})
	for range 5 { // 6 to 15
		ask(longName, "GET lock", "A1")
	}
	add(time.Millisecond, checker.Event{Kind: checker.Write, Client: "A", Accepted: true})
	for i := range 100 {
		ask("A", fmt.Sprint("GET other", i), fmt.Sprint(i))
	}
	add(500*time.Millisecond, checker.Event{Kind: checker.Invoke, Client: "A", Op: checker.Release, Call: 2})
	add(time.Millisecond, checker.Event{Kind: checker.State, Node: "n1", Cause: checker.ByExpiry})
	add(0, checker.Event{Kind: checker.Return, Client: "A", Op: checker.Release, Call: 2, Result: checker.OK})
	add(0, checker.Event{Kind: checker.End})
	c := reports.Cell{World: "sim", Strategy: "x", Scenario: "y", Verdict: reports.Violated, Nodes: 1, Anomalies: []checker.Anomaly{checker.Overlap}, Expected: []checker.Anomaly{checker.Overlap},
		Witnesses: []checker.Witness{{Anomaly: checker.Overlap, Events: []int{2, 16}, Message: "It is so."}}}
	c.Settle()
	var b bytes.Buffer
	if err := reports.WriteFindings(&b, reports.Findings{Strategy: "x", List: []reports.Found{{Anomaly: checker.Overlap, Moves: 1, Requests: 1, File: "x.txt", Cell: c, History: h}}}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), reports.HTMLFile)
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return (&url.URL{Scheme: "file", Path: file}).String()
}

// TestLinksToEvents checks that the page shows the right state for an address with any event, and
// nothing of the previous event.
func TestLinksToEvents(t *testing.T) {
	b := browse(t, long(t)+"#overlap", 1280, 900)
	const cursor = live + `.querySelector('.cur').getAttribute('d') !== ''`
	const here = `[...document.querySelectorAll('li.here')].map(li => li.dataset.e).join()`
	for _, test := range []struct {
		event, says, here string
		drawn             bool
	}{
		{"2", "0.001 s: A's SET lock A1 on n1 made the key A's and was answered OK (event 2 is told together with event 1)", "2", true},
		{"4", "0.002 s: event 3: OK; A's acquire succeeded", "4", true},
		{"9999", "event 9999 is not in the picture", "", false},
		{"1", "0.001 s: A's SET lock A1 on n1 made the key A's and was answered OK", "2", true},
		{"9", "0.004 s: event 6: " + longName + " asks n1 5 times in 9ms: GET lock gets A1 (event 9 is told together with event 6)", "", true},
		{"60", "event 60 is not in the picture", "", false},
		{"5", "0.003 s: event 5: the script did this: hold A messages or none", "", true},
		{"16", "0.014 s: the resource accepted A's write", "16", true},
		{"no-number", "", "", false},
	} {
		b.do(chromedp.Evaluate[chromedp.Void](`location.hash = '#overlap/` + test.event + `'`))
		b.soon("the page is there", `document.querySelector('article.open') !== null`)
		time.Sleep(100 * time.Millisecond)
		got, marked, drawn := eval[string](b, said), eval[string](b, here), eval[bool](b, cursor)
		if got != test.says || marked != test.here || drawn != test.drawn {
			t.Errorf("event %s: %q, sentence %q, a cursor: %v; want %+v", test.event, got, marked, drawn, test)
		}
	}
	b.expect("the numbers are those of the proof", `[...document.querySelectorAll('article.open svg .wt.c')].map(g => g.textContent).join() === '#2#16,#2#16'`)
	b.do(chromedp.Evaluate[chromedp.Void](`location.hash = '#overlap/2'`))
	b.soon("the event is there again", cursor)
	b.do(chromedp.Evaluate[chromedp.Void](`location.hash = '#overlap'`))
	b.soon("nothing is left of it", said+` === '' && !(`+cursor+`)`)
	b.quiet()
}

// TestTimelineOfWhatIsCut checks that spans that continue beyond the picture keep their length.
func TestTimelineOfWhatIsCut(t *testing.T) {
	b := browse(t, long(t)+"#overlap", 1280, 900)
	for range 10 {
		b.do(chromedp.KeyEvent("b"))
		if eval[bool](b, said+`.includes('believed')`) {
			break
		}
	}
	got, seen := eval[string](b, said), 0
	if n, err := fmt.Sscanf(got, "A believed that it held the lock for 712 ms, until it called release: 0.002 s to 0.714 s, 712 ms (the picture shows %d ms of it)", &seen); n != 1 || err != nil || seen < 10 || seen > 200 {
		t.Errorf("it says %q", got)
	}
	b.expect("the label has all of it", `[...document.querySelectorAll('article.open svg[data-axis] text')].some(e => e.textContent === 'holds 712 ms')`)
	b.expect("it has a point, at each zoom", `[...document.querySelectorAll('article.open svg[data-axis] path.h0,article.open .live path.h0')].every(e => /l4,7,?-4,7H/.test(e.getAttribute('d')))`)
	b.do(chromedp.KeyEvent("ww"))
	b.expect("it has the height of the others", live+`.querySelector('path.h0').getBBox().height === 14`)
	b.quiet()
}

// TestHeadsOfLanes checks that the focused button keeps the focus, and that a name that is cut has
// its full text as a title.
func TestHeadsOfLanes(t *testing.T) {
	b := browse(t, long(t)+"#overlap", 1280, 900)
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector('button[aria-label="pin lane n1"]').focus()`), chromedp.KeyEvent("ws0"))
	b.expect("it has the focus", `document.activeElement.textContent === 'n1'`)
	b.expect("the long name is there", `document.querySelector('button[aria-label="pin lane `+longName+`"]').title.startsWith('`+longName+`')`)
	b.expect("it says that it is cut", `(e => e.scrollWidth > e.clientWidth && getComputedStyle(e).textOverflow === 'ellipsis')(document.querySelector('button[aria-label="pin lane `+longName+`"]'))`)
	b.expect("so does the picture", `[...document.querySelectorAll('article.open svg[data-axis] .b text')].some(e => e.firstChild.data.endsWith('…') && e.querySelector('title').textContent === '`+longName+`')`)
	b.expect("the last time is read to its end", `[...document.querySelectorAll('article.open svg g.d.c')].every(g => { const r = g.closest('svg').getBoundingClientRect(); return r.width === 0 || [...g.children].every(e => e.getBoundingClientRect().right <= r.right) })`)
	b.quiet()
}
