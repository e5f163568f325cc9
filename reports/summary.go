package reports

import (
	"bufio"
	"fmt"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/reports/diagram"
)

// accountLimit is the largest number of sentences in a summary. A longer list would not be a
// summary.
const accountLimit = 40

// summary writes the story again as a short list: what was done to the clients and nodes, what
// changed the key, the results of the operations, and the writes. summary leaves out how the
// commands got to the servers, and attempts of other clients that only incremented a counter.
// summary writes nothing if there are more than accountLimit sentences.
func (s *story) summary(b *bufio.Writer) {
	sentences := s.sentences()
	if len(sentences) == 0 || len(sentences) > accountLimit {
		return
	}
	b.WriteString("in short:\n")
	for i, sentence := range sentences {
		fmt.Fprintf(b, "  %*d. %s\n", len(fmt.Sprint(len(sentences))), i+1, sentence.Text)
	}
	b.WriteByte('\n')
}

// sentences returns the story in short, with the number of each sentence's event.
func (s *story) sentences() []diagram.Sentence {
	var out []diagram.Sentence
	say := func(e checker.Event, text string) { out = append(out, diagram.Sentence{Event: e.Index, Text: text}) }
	keys := map[string]checker.Event{}     // last change of the key, by server
	answered := map[string]checker.Event{} // latest reply in the operation, by client
	events := s.h.Events
	for i, e := range events {
		switch e.Kind {
		case checker.State:
			before := keys[e.Node+e.Server]
			keys[e.Node+e.Server] = e
			if s.repeatsEvent(i) {
				continue
			}
			if e.Cause != checker.ByCommand {
				say(e, s.key(e))
				continue
			}
			request, ok := s.caused[i]
			if !ok || e.Client != e.Owner && counts(&before, &e) {
				continue
			}
			answer := ""
			if told, ok := s.replyAt[request]; ok {
				answer = events[told].Reply
			}
			say(e, s.change(events[request], e, before, answer))
		case checker.Invoke:
			delete(answered, e.Client)
		case checker.Reply:
			answered[e.Client] = e
		case checker.Return:
			text := fmt.Sprintf("%s's %s %s", e.Client, e.Op, outcome(e.Result)) + tokenOf(e)
			if last, ok := answered[e.Client]; ok && e.Result != checker.OK {
				text += fmt.Sprintf(" after %s was answered %s", clip(last.Command), clip(last.Reply))
			}
			say(e, text)
		case checker.Write, checker.Lost, checker.Pause, checker.Resume, checker.Crash, checker.Restart, checker.Cancel, checker.Dropped:
			say(e, s.plain(e))
		case checker.Fault:
			if e.Node != "" || e.Client != "" {
				say(e, e.Text)
			}
		}
	}
	return out
}

// repeatsEvent reports whether an event repeats the previous change for another member of a
// cluster. The members of a cluster share the state of a lock.
func (s *story) repeatsEvent(i int) bool {
	if s.h.Meta.Service == "" || i == 0 {
		return false
	}
	e, before := s.h.Events[i], s.h.Events[i-1]
	return before.Kind == checker.State && before.Node != e.Node &&
		before.Owner == e.Owner && before.Value == e.Value && before.Cause == e.Cause && before.Client == e.Client
}

// change describes what a command did to the key, and the reply to it.
func (s *story) change(command, e, was checker.Event, answer string) string {
	text := fmt.Sprintf("%s's %s on %s ", command.Client, clip(command.Command), command.Node)
	now := e.Owner + "'s"
	if e.Owner == "" {
		now = e.Value
	}
	before := was.Owner
	switch {
	case now == "" && before == "" && was.Value == "": // a lock of several keys, without a majority
		text += "changed a key and left the lock free"
	case now == "" && before == "":
		text += "removed the key"
	case now == "":
		text += "removed " + before + "'s key"
	case before == "":
		text += "made the key " + now
	case before == e.Owner:
		text += "changed " + before + "'s key"
	default:
		text += fmt.Sprintf("changed the key from %s's to %s", before, now)
	}
	if answer != "" {
		text += " and was answered " + clip(answer)
	}
	return text
}
