package checker

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// parseHistory reads a history in the notation of testdata/cases, in which each
// line is one event:
//
//	with ttl 10s grace 5s bound 50s honour   settings, before the first event;
//	with fenced nodes n1,n2,n3               any of them may be left out
//	0s A acquire                             an invoke of acquire, try, release or extend
//	1ms A acquire ok token 7 until 29s       its return: ok, fail or unknown
//	1ms A acquire unknown error NOSCRIPT     one with an error of a server
//	2s A write accepted                      or refused; token 7
//	3s A pause                               or resume, crash, restart, lost, cancel
//	4s A sends n1 DEL lock                   a request that n1 executed
//	4s A sent 3s n1 DEL lock                 one that had set out before
//	4s A hears n1 (nil)                      an answer that A got
//	5s n1 A1 of A until 35s by A             the key; "for ever" instead of "until"; "by" a client or a cause
//	5s n1 2 of ? until 35s by A              the key, of which nobody can tell whose it is
//	5s n1/1 gone by flush                    the key of another server of n1
//	6s fault n1 split C
//	9s end
//
// Without settings the lease is 30 s, the grace 15 s and the bound 150 s, and n1
// is the only node. The names of clients are letters.
func parseHistory(lines []string) (History, error) {
	h := History{Meta: Meta{
		Format: 1, Strategy: "any", Scenario: "any", World: "none", Clients: []string{"A", "B", "C", "D"}, Nodes: []string{"n1"},
		TTL: 30 * time.Second, Grace: 15 * time.Second, Bound: 150 * time.Second,
	}}
	calls, open := 0, map[string]int{}
	for _, line := range lines {
		words := strings.Fields(line)
		if words[0] == "with" {
			if err := parseSettings(&h.Meta, words[1:]); err != nil {
				return h, fmt.Errorf("%q: %w", line, err)
			}
			continue
		}
		e := Event{Index: len(h.Events)}
		if err := parseEvent(&e, words); err != nil {
			return h, fmt.Errorf("%q: %w", line, err)
		}
		switch e.Kind {
		case Invoke:
			calls++
			open[e.Client] = calls
			e.Call = calls
		case Return:
			e.Call = open[e.Client]
		}
		h.Events = append(h.Events, e)
	}
	return h, nil
}

func parseSettings(m *Meta, words []string) error {
	for len(words) > 0 {
		switch words[0] {
		case "honour":
			m.HonourValidity = true
			words = words[1:]
			continue
		case "fenced":
			m.Fenced = true
			words = words[1:]
			continue
		}
		if len(words) < 2 {
			return fmt.Errorf("what is %q?", words[0])
		}
		if words[0] == "nodes" {
			m.Nodes = strings.Split(words[1], ",")
			words = words[2:]
			continue
		}
		d, err := time.ParseDuration(words[1])
		if err != nil {
			return err
		}
		switch words[0] {
		case "ttl":
			m.TTL = d
		case "grace":
			m.Grace = d
		case "bound":
			m.Bound = d
		default:
			return fmt.Errorf("what is %q?", words[0])
		}
		words = words[2:]
	}
	return nil
}

func parseEvent(e *Event, words []string) (err error) {
	if e.Time, err = time.ParseDuration(words[0]); err != nil {
		return err
	}
	switch who := words[1]; {
	case who == "end":
		e.Kind = End
		return nil
	case who == "fault":
		e.Kind, e.Node, e.Text = Fault, words[2], strings.Join(words[2:], " ")
		return nil
	case who[0] == 'n':
		return parseKey(e, who, words[2:])
	}
	e.Client = words[1]
	rest := words[3:]
	switch word := words[2]; word {
	case "acquire", "try", "release", "extend":
		e.Kind, e.Op = Invoke, Op(word)
		if len(rest) > 0 {
			e.Kind, e.Result = Return, Result(rest[0])
			rest = rest[1:]
		}
	case "write":
		e.Kind, e.Accepted = Write, rest[0] == "accepted"
		rest = rest[1:]
	case "sent":
		e.Kind, e.Node, e.Command = Request, rest[1], strings.Join(rest[2:], " ")
		e.Sent, err = time.ParseDuration(rest[0])
		return err
	case "sends":
		e.Kind, e.Node, e.Command = Request, rest[0], strings.Join(rest[1:], " ")
		return nil
	case "hears":
		e.Kind, e.Node, e.Reply = Reply, rest[0], strings.Join(rest[1:], " ")
		return nil
	case "pause", "resume", "crash", "restart", "lost", "cancel":
		e.Kind = Kind(word)
	default:
		return fmt.Errorf("what is %q?", word)
	}
	for ; len(rest) > 1 && err == nil; rest = rest[2:] {
		switch rest[0] {
		case "token":
			e.Token, err = strconv.ParseInt(rest[1], 10, 64)
		case "until":
			e.Until, err = time.ParseDuration(rest[1])
		case "error":
			e.Error = rest[1]
		default:
			err = fmt.Errorf("what is %q?", rest[0])
		}
	}
	return err
}

func parseKey(e *Event, server string, words []string) (err error) {
	e.Kind, e.Server = State, server
	e.Node, _, _ = strings.Cut(server, "/")
	if e.Node == server {
		e.Server += "/0"
	}
	if words[0] != "gone" {
		if len(words) != 7 {
			return fmt.Errorf("want VALUE of OWNER until TIME by CAUSE")
		}
		e.Value, e.Owner = words[0], words[2]
		if e.Owner == "?" {
			e.Owner = ""
		}
		if words[3] == "until" {
			if e.Expires, err = time.ParseDuration(words[4]); err != nil {
				return err
			}
		}
	}
	e.Cause = Cause(words[len(words)-1])
	if len(e.Cause) == 1 {
		e.Client, e.Cause = string(e.Cause), ByCommand
	}
	return nil
}

// history is parseHistory of text, for tests of one history.
func history(t testing.TB, text string) History {
	t.Helper()
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	h, err := parseHistory(lines)
	if err != nil {
		t.Fatal(err)
	}
	return h
}
