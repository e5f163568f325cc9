package page_test

import (
	"flag"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/lockfault/lockfault/reports"
)

var reportDir = flag.String("report", "", "absolute path of the `directory` of the report for the screenshots in docs (default empty: a report of the test's own, and no file in docs)")

// TestPictures takes the screenshots for docs/reports.md from the report in the directory -report, as
// make pictures does. Fonts differ between machines, so the test does not compare screenshots, but
// checks that the page is visible.
func TestPictures(t *testing.T) {
	dir, docs := *reportDir, t.TempDir()
	address, story := "", "#redlock/gc-pause"
	if dir == "" {
		address = report(t)
	} else {
		address, story, docs = (&url.URL{Scheme: "file", Path: filepath.Join(dir, reports.HTMLFile)}).String(), "#set-nx-px-lua/gc-pause-holding", "../../docs"
	}
	for _, p := range []struct {
		name, at      string
		width, height int64
	}{{"report.png", "", 1280, 900}, {"report-story.png", story, 1280, 1000}, {"report-narrow.png", story, 390, 844}} {
		b := browse(t, address+p.at, p.width, p.height)
		picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		b.must(err)
		if len(picture) < 10_000 {
			t.Errorf("%s has %d bytes: there is nothing to be seen", p.name, len(picture))
		}
		b.must(os.WriteFile(filepath.Join(docs, p.name), picture, 0o644))
		b.quiet()
	}
}
