package page_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/lockfault/lockfault/reports/diagram"
)

// Expressions for the visible picture and for its zoom factor.
const (
	live = `document.querySelector('article.open .live')`
	zoom = `(() => { const svg = document.querySelector('article.open svg[data-axis]'), end = svg.dataset.axis.split(';').slice(1).reduce((x, item) => x + +item.split(',')[0], 0);
		return (document.querySelector('article.open .live').getAttribute('width') - svg.getAttribute('width') + end - 74) / (end - 74) })()`
	said = `document.querySelector('article.open .zoom output').textContent`
)

// timeline opens the story in which A is paused for longer than its lease.
func timeline(t *testing.T, at string, width int64) *browser {
	t.Helper()
	return browse(t, report(t)+"#redlock/gc-pause"+at, width, 900)
}

// xOf returns the position of an event on the screen. It reads the position from the file, not from
// what the script made of it.
func (b *browser) xOf(event int) float64 {
	b.Helper()
	text := eval[string](b, `document.querySelector('article.open svg[data-axis]').dataset.axis`)
	x, number := 0, 0
	text, _, _ = strings.Cut(text, "|")
	for _, item := range strings.Split(text, ";")[1:] {
		for i, field := range strings.Split(item, ",") {
			field, _, _ = strings.Cut(field, "+") // without the numbers of events shown together
			n, err := strconv.Atoi(field)
			b.must(err)
			switch {
			case i == 0:
				x += n
			case i > 1:
				if number += n; number == event {
					return eval[float64](b, live+`.getBoundingClientRect().left`) + 74 + float64(x-74)*eval[float64](b, zoom)
				}
			}
		}
	}
	b.Fatalf("event %d has no place", event)
	return 0
}

// soon fails the test unless an expression becomes true in a short time.
func (b *browser) soon(says, expression string) {
	b.Helper()
	for range 100 {
		if eval[bool](b, expression) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	b.expect(says, expression)
}

func near(a, b float64) bool { return math.Abs(a-b) < 1.5 }

// TestTimelineZooms checks that keys, buttons and the wheel stretch time, but not text.
func TestTimelineZooms(t *testing.T) {
	b := timeline(t, "", 1280)
	const letters = `[...document.querySelectorAll('article.open .live text')].find(e => e.textContent === 'B').getBoundingClientRect().width`
	const cut = `[...document.querySelectorAll('article.open .live text')].map(e => e.textContent).filter(e => e.includes('acquire')).join()`
	width := eval[float64](b, letters)
	before := eval[string](b, cut)
	b.do(chromedp.KeyEvent("w"), chromedp.KeyEvent("w"))
	b.expect("it is wider", fmt.Sprintf(`Math.abs(%s - 2.25) < 0.01`, zoom))
	b.expect("nothing is stretched", `['a', 'd'].every(m => Math.abs(`+live+`.getScreenCTM()[m] - 1) < 0.001)`)
	if got := eval[float64](b, letters); !near(got, width) {
		t.Errorf("a letter was %v wide, and is %v", width, got)
	}
	b.expect("it has moved", `document.querySelector('article.open .draw').scrollLeft > 0`)
	b.expect("the lanes' names are seen", `[...document.querySelectorAll('article.open .heads button')].every(e => { const r = e.getBoundingClientRect(); return document.elementFromPoint(r.left + 9, r.top + 8) === e })`)
	was := eval[float64](b, `document.querySelector('article.open .draw').scrollLeft`)
	b.do(chromedp.KeyEvent("a"))
	b.expect("a pans to the left", fmt.Sprintf(`document.querySelector('article.open .draw').scrollLeft < %v`, was))
	b.do(chromedp.KeyEvent("d"), chromedp.Click(chromedp.CSS(`.zoom button[aria-label^="pan to the right"]`)))
	b.expect("d and the button pan to the right", fmt.Sprintf(`document.querySelector('article.open .draw').scrollLeft > %v`, was-1))
	b.do(chromedp.KeyEvent("s"))
	b.expect("s is the way back", fmt.Sprintf(`Math.abs(%s - 1.5) < 0.01`, zoom))
	b.do(chromedp.Click(chromedp.CSS(`.zoom button[aria-label^="zoom in"]`)))
	b.expect("so is the button in", fmt.Sprintf(`Math.abs(%s - 2.25) < 0.01`, zoom))
	b.do(chromedp.Click(chromedp.CSS(`.zoom button[aria-label^="zoom out"]`)))
	b.expect("and the one out", fmt.Sprintf(`Math.abs(%s - 1.5) < 0.01`, zoom))

	// The point below the pointer stays in place.
	at := b.xOf(7)
	y := eval[float64](b, live+`.getBoundingClientRect().top + 60`)
	_, err := chromedp.Call(b.ctx, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseWheel, X: at, Y: y, DeltaX: 0.001, DeltaY: -300, Modifiers: 2})
	b.must(err)
	b.soon("the wheel zooms", zoom+` > 2`)
	if got := b.xOf(7); !near(got, at) {
		t.Errorf("event 7 was at %v, where the pointer is, and is at %v", at, got)
	}
	b.expect("the address leads to the event", `(location.hash = '#redlock/gc-pause/2', true)`)
	b.soon("it is marked", `document.querySelector('article.open li.here')?.dataset.e === '2'`)
	if got := b.xOf(2); got < 100 || got > 1260 {
		t.Errorf("event 2 is at %v, which nobody sees", got)
	}
	b.do(chromedp.Click(chromedp.CSS(`.zoom button[aria-label^="the whole"]`)))
	b.do(chromedp.KeyEvent("wwwwwwwwww"), chromedp.Evaluate[chromedp.Void](`document.querySelector('article.open .draw').scrollLeft = 0`))
	if !strings.Contains(before, "…") {
		t.Errorf("nothing was cut off: %s", before)
	}
	b.soon("there is room for the whole", cut+`.startsWith("A's acquire succeeded, after 2 ms")`)
	b.do(chromedp.KeyEvent("0"))
	b.expect("the whole is seen", `document.querySelector('article.open .draw').scrollWidth <= document.querySelector('article.open .draw').clientWidth`)
	b.quiet()
}

// TestTimelinePins checks that a pinned lane moves to the top with everything in it and the
// messages to it.
func TestTimelinePins(t *testing.T) {
	b := timeline(t, "", 1280)
	const order = `[...document.querySelectorAll('article.open .heads button')].map(e => e.textContent).join()`
	// The vertical ends of B's request to n1, relative to the heads of the two lanes.
	const arrow = `(() => { const top = name => parseFloat([...document.querySelectorAll('article.open .heads button')].find(e => e.textContent === name).style.top);
		const n = document.querySelector('article.open .live>path.m').getAttribute('d').match(/[\d.]+/g).map(Number); return [n[1] - top('B'), n[3] - top('n1')].join() })()`
	b.expect("the lanes are in their order", order+` === 'A,B,C,n1,resource'`)
	b.expect("the arrow leads from B to n1", arrow+` === '28,0'`)
	b.do(chromedp.Click(chromedp.CSS(`button[aria-label="pin lane n1"]`)))
	b.expect("the pinned lane is the first", order+` === 'n1,A,B,C,resource'`)
	b.expect("it says so", `document.querySelector('button[aria-label="pin lane n1"]').getAttribute('aria-pressed') === 'true'`)
	b.expect("the arrow follows", arrow+` === '28,0'`)
	b.expect("so does the key", `[...document.querySelectorAll('article.open .live path.k0')].every(e => e.getBBox().y === 50)`)
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector('button[aria-label="pin lane B"]').focus()`), chromedp.KeyEvent("\r"))
	b.expect("by key too, in the order in which they were", order+` === 'B,n1,A,C,resource'`)
	b.expect("the overlap goes from the one who believes to the other", `(() => { const box = document.querySelector('article.open .live path.o').getBBox(),
		tops = ['A', 'B'].map(name => parseFloat(document.querySelector('button[aria-label="pin lane ' + name + '"]').style.top));
		return Math.round(box.y) === Math.min(...tops) - 3 && box.y + box.height === Math.max(...tops) + 17 })()`)
	b.do(chromedp.KeyEvent(" "))
	b.expect("it is still the one that keys go to", order+` === 'n1,A,B,C,resource' && document.activeElement.textContent === 'B'`)
	b.quiet()
}

// TestTimelineMeasures checks that a selected length is that of the history, whatever the scales in
// between.
func TestTimelineMeasures(t *testing.T) {
	b := timeline(t, "", 1280)
	events := history("redlock", "gc-pause", 0).Events
	length := func(from, to time.Duration) string {
		return fmt.Sprintf("%.3f s to %.3f s, %s", from.Seconds(), to.Seconds(), diagram.Words(to-from))
	}
	for _, k := range []string{"", "www", "0"} { // at each zoom
		if k != "" {
			b.do(chromedp.KeyEvent(k))
		}
		for _, pair := range [][2]int{{2, 7}, {7, 5}, {4, 8}} {
			if k == "www" && pair[0] != 7 { // not on one screen
				continue
			}
			b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector('article.open .live').scrollIntoView()`))
			y := eval[float64](b, live+`.getBoundingClientRect().bottom - 45`)
			if k == "www" {
				b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelector('article.open .draw').scrollLeft += %v - 700`, b.xOf(7))))
			}
			b.do(chromedp.DragAndDropXY(b.xOf(pair[0])+1, y, b.xOf(pair[1])-1, y))
			want := length(events[min(pair[0], pair[1])].Time, events[max(pair[0], pair[1])].Time)
			b.expect(fmt.Sprintf("from event %d to %d it is %s, not %s", pair[0], pair[1], want, eval[string](b, said)), said+` === `+strconv.Quote(want))
		}
	}
	b.expect("it is drawn", `document.querySelector('article.open .live .sel').getBBox().width > 20`)

	// The hold of A, from its acquire to the end.
	belief := `[...document.querySelectorAll('article.open .live path.h0')][0].getBoundingClientRect()`
	b.do(chromedp.MouseClickXY(eval[float64](b, belief+`.left`)+200, eval[float64](b, belief+`.top`)+5))
	want := "A believed that it held the lock for 34 s, to the end of the run: " + length(events[2].Time, events[len(events)-1].Time)
	b.expect("it says what A believed and for how long: "+eval[string](b, said), said+` === `+strconv.Quote(want))

	b.do(chromedp.KeyEvent(kb.Escape))
	b.expect("Esc takes the selection back first", said+` === '' && document.querySelector('article.open .live .sel').getAttribute('d') === ''`)
	b.expect("and leads nowhere", open+` === 'redlock/gc-pause'`)

	// An instant stays an instant at each zoom.
	b.do(chromedp.KeyEvent("wwwwww"), chromedp.Evaluate[chromedp.Void](`document.querySelector('article.open .draw').scrollLeft = 1e6`))
	instant := live + `.querySelector('path.h2').getBoundingClientRect()`
	b.expect("it is as narrow as before", instant+`.width < 4`)
	b.do(chromedp.MouseClickXY(eval[float64](b, instant+`.left`)+1, eval[float64](b, instant+`.top`)+7))
	want = "C believed that it held the lock for 0 ns, to the end of the run: 34.000 s to 34.000 s, 0 ns"
	b.expect("it says so: "+eval[string](b, said), said+` === `+strconv.Quote(want))
	b.do(chromedp.KeyEvent(kb.Escape), chromedp.KeyEvent("0"))

	// With the keyboard only.
	b.do(chromedp.KeyEvent("b"))
	b.expect("b selects what lasted: "+eval[string](b, said), said+`.startsWith("A's acquire succeeded, after 2 ms: 0.000 s to 0.002 s, 2 ms")`)
	b.do(chromedp.KeyEvent(kb.Escape), chromedp.Evaluate[chromedp.Void](`document.querySelector('article.open .draw').focus()`), chromedp.KeyEvent(kb.Home))
	b.expect("at the first: "+eval[string](b, said), said+`.startsWith('0.000 s')`)
	for range 5 {
		b.do(chromedp.KeyEvent(kb.ArrowRight, chromedp.KeyModifiers(chromedp.ModifierShift)))
	}
	want = length(0, events[5].Time)
	b.expect(fmt.Sprintf("shift and five steps select %s: %s", want, eval[string](b, said)), said+` === `+strconv.Quote(want))

	b.do(chromedp.KeyEvent(kb.Escape), chromedp.KeyEvent(kb.Escape))
	b.expect("with nothing selected it leads back", open+` === ''`)
	b.quiet()
}

// TestTimelineOnPaper checks that the printed timeline is the original drawing, whatever the zoom
// on the screen.
func TestTimelineOnPaper(t *testing.T) {
	b := timeline(t, "", 390)
	was := eval[string](b, `document.querySelector('article.open svg[data-axis]').outerHTML`)
	b.do(chromedp.KeyEvent("www"), chromedp.Click(chromedp.CSS(`button[aria-label="pin lane n1"]`)))
	b.expect("nothing sticks out", `document.documentElement.scrollWidth <= innerWidth`)
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
	b.must(err)
	b.expect("the copy, its heads and buttons are not there", `['.live', '.heads', '.zoom'].every(s => document.querySelector('article.open ' + s).getClientRects().length === 0)`)
	b.expect("the picture is", `document.querySelector('article.open svg[data-axis]').getBoundingClientRect().width > 100 && document.querySelectorAll('article.open svg[data-axis] g.b>text').length === 5`)
	if now := eval[string](b, `document.querySelector('article.open svg[data-axis]').outerHTML`); now != was {
		t.Errorf("it was\n%s\nand is\n%s", was, now)
	}
	b.quiet()
}
