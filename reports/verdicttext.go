package reports

import (
	"bufio"
	"fmt"
	"maps"
	"slices"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/leases"
)

// verdict writes the verdict of the cell, and its reasons.
func (s *story) verdict(b *bufio.Writer, cell Cell) {
	switch cell.Verdict {
	case Held:
		fmt.Fprintf(b, "held: nothing went wrong\n")
	case Violated:
		fmt.Fprintf(b, "violated: %s\n", names(cell.Anomalies))
	default:
		fmt.Fprintf(b, "%s: %s\n", cell.Verdict, cell.Reason)
	}
	for _, w := range cell.Witnesses {
		fmt.Fprintf(b, "\n%s: %s\n", w.Anomaly, w.Message)
		s.proof(b, w.Events)
	}
	b.WriteByte('\n')
	if cell.Decided() && cell.Verdict != NotApplicable {
		if cell.Linearizable {
			b.WriteString("linearizable: yes, the acquires and releases have a legal order\n")
		} else {
			b.WriteString("linearizable: no, the acquires and releases have no legal order\n")
			if why := cell.Unordered(); why != "" {
				fmt.Fprintf(b, "%s\n", why)
				s.proof(b, cell.Conflict.Events)
			}
		}
	}
	if d := cell.Unjudged; d != nil && cell.Decided() {
		fmt.Fprintf(b, "not judged: %s. %s\n", names(checker.ServerSide()), d.Message)
	}
	if cell.Decided() && len(without(cell.Anomalies, cell.Expected)) > len(cell.Extra()) {
		b.WriteString("unavailable is what shows of a ghost or a stuck-lock, where nobody can tell whose the key is\n")
	}
	if cell.Varies != "" {
		fmt.Fprintf(b, "another run of this seed may tell it in another order, since %s\n", cell.Varies)
	}
	for _, name := range slices.Sorted(maps.Keys(cell.Measures)) {
		fmt.Fprintf(b, "measured: %s %v\n", name, cell.Measures[name])
	}
	for _, m := range cell.MetNothing {
		b.WriteString(m.text(m.Text))
		if !m.OrNone {
			b.WriteString(": what it was to do was not done, and not tested")
		}
		b.WriteByte('\n')
	}
	if cell.Leak != "" {
		fmt.Fprintf(b, "a goroutine outlives its client: %s; %s\n", cell.Leak, LeakRemedy)
	}
	byClass := cell.ExpectedBy == ByClass && cell.Class != ""
	if byClass || len(leases.Bugs(cell.Findings)) > 0 { // what a script expects may be a bug
		fmt.Fprintf(b, "judged as a lock of the class %s, see docs/leases.md\n", cell.Class)
		for _, f := range cell.Findings {
			fmt.Fprintf(b, "%s\n", f)
		}
	}
	if byClass {
		return
	}
	switch {
	case !cell.AsExpected:
		fmt.Fprintf(b, "not as expected: %s\n", cell.Difference())
	case cell.ByChance() != "":
		fmt.Fprintf(b, "as expected, %s\n", cell.ByChance())
	case cell.Improvement() != "":
		fmt.Fprintf(b, "as expected: at most %s; %s\n", names(cell.Expected), cell.Improvement())
	case len(cell.Expected) > 0:
		fmt.Fprintf(b, "as expected: %s\n", names(cell.Expected))
	default:
		b.WriteString("as expected: nothing\n")
	}
}

// proof lists events by their numbers, each in a sentence.
func (s *story) proof(b *bufio.Writer, events []int) {
	width := 0
	for _, i := range events {
		width = max(width, len(fmt.Sprint(i)))
	}
	for _, i := range events {
		if i < 0 || i >= len(s.h.Events) {
			continue // the witness belongs to another history
		}
		fmt.Fprintf(b, "  %*d  %s\n", width, i, s.sentence(s.h.Events[i]))
	}
}

// sentence describes an event with its time.
func (s *story) sentence(e checker.Event) string {
	return "at " + s.seconds(e.Time) + " s " + s.plain(e)
}

// plain describes an event without its time.
func (s *story) plain(e checker.Event) string {
	switch e.Kind {
	case checker.Invoke:
		return fmt.Sprintf("%s called %s", e.Client, e.Op)
	case checker.Return:
		text := fmt.Sprintf("%s's %s %s", e.Client, e.Op, outcome(e.Result)) + tokenOf(e)
		if e.Error != "" {
			text += fmt.Sprintf(" (%s)", e.Error)
		}
		return text
	case checker.Lost:
		return fmt.Sprintf("%s's lock told it that it was lost", e.Client)
	case checker.Write:
		if e.Accepted {
			return fmt.Sprintf("the resource accepted %s's write", e.Client) + tokenOf(e)
		}
		return fmt.Sprintf("the resource refused %s's write", e.Client) + tokenOf(e)
	case checker.Request:
		return fmt.Sprintf("%s executed %s's %s", e.Node, e.Client, e.Command)
	case checker.Reply:
		return fmt.Sprintf("%s received %s from %s, the answer to %s", e.Client, e.Reply, e.Node, e.Command)
	case checker.Push:
		return fmt.Sprintf("%s received the message %s from %s", e.Client, e.Reply, e.Node)
	case checker.Held, checker.Passed:
		return fmt.Sprintf("the gate %s %s", e.Kind, s.message(e))
	case checker.Dropped:
		return fmt.Sprintf("this was lost: %s", s.message(e))
	case checker.State:
		return s.key(e)
	case checker.Pause:
		return e.Client + "'s process stopped"
	case checker.Resume:
		return e.Client + "'s process went on"
	case checker.Crash:
		return e.Client + "'s process died"
	case checker.Restart:
		return e.Client + "'s process started anew"
	case checker.Cancel:
		return e.Client + "'s caller gave up"
	case checker.Fault:
		return "the script did this: " + e.Text
	case checker.Measure:
		return fmt.Sprintf("the stopwatch %s read %v", e.Text, e.Took)
	case checker.Step:
		return fmt.Sprintf("the script reached line %d: %s", e.Line, e.Text)
	case checker.End:
		return "the run was over"
	}
	return string(e.Kind)
}

// key describes a change of the key.
func (s *story) key(e checker.Event) string {
	where, text := placeOf(e), ""
	switch {
	case e.Owner == "" && e.Value == "":
		text = "the key on " + where + " was gone"
	case e.Owner == "":
		text = fmt.Sprintf("the key on %s was %s, nobody's value", where, e.Value)
	default:
		text = fmt.Sprintf("the key on %s was %s's", where, e.Owner)
	}
	if e.Owner != "" || e.Value != "" {
		if e.Expires == 0 {
			text += ", without a TTL"
		} else {
			text += ", until " + s.seconds(e.Expires) + " s"
		}
	}
	switch e.Cause {
	case checker.ByCommand:
		if e.Client != "" {
			text += ", by a command of " + e.Client
		}
	case "":
	default:
		text += fmt.Sprintf(", by %s", e.Cause)
	}
	return text
}

func tokenOf(e checker.Event) string {
	if e.Token == 0 {
		return ""
	}
	return fmt.Sprintf(" with fencing token %d", e.Token)
}

// outcome returns the result of an operation as the predicate of a sentence.
func outcome(r checker.Result) string {
	switch r {
	case checker.OK:
		return "succeeded"
	case checker.Fail:
		return "failed"
	case checker.Unknown:
		return "ended with an unknown outcome"
	}
	return string(r)
}
