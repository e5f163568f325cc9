package history_test

import (
	"fmt"
	"io"

	"github.com/lockfault/lockfault/checker/history"
)

// A shape is a way in which histories are written.
type shape struct {
	name   string
	format history.Format
	head   string
	event  func(b []byte, e generated) []byte // appends its text
}

// A generated event is one of a legal history of a mutex: each operation is a
// call and, behind it, its return.
type generated struct {
	index, time, client, key int // the key is -1 if there is only one lock
	op                       string
	returns                  bool
}

func shapes() []shape {
	named := func(e generated) string {
		if e.key < 0 {
			return ""
		}
		return fmt.Sprintf(`,"key":"lock-%d"`, e.key)
	}
	said := func(e generated, call, ok string) string {
		if e.returns {
			return ok
		}
		return call
	}
	return []shape{
		{"jsonl", history.JSONLines,
			`{"lockfault":1,"strategy":"s","scenario":"c","world":"sim","seed":1,"clients":["A"],"nodes":["n1"],"ttl":1,"grace":1,"bound":1}` + "\n",
			func(b []byte, e generated) []byte {
				return fmt.Appendf(b, `{"i":%d,"t":%d,"kind":"%s","client":"C%d"%s,"op":"%s","call":%d%s}`+"\n",
					e.index, e.time, said(e, "invoke", "return"), e.client, named(e), e.op, e.index/2+1, said(e, "", `,"result":"ok"`))
			}},
		// As Python's json.dumps writes it.
		{"jsonl-spaces", history.JSONLines, "",
			func(b []byte, e generated) []byte {
				return fmt.Appendf(b, `{"t": %d, "kind": "%s", "client": "Jürgen %d", "op": "%s"%s}`+"\n",
					e.time, said(e, "invoke", "return"), e.client, e.op, said(e, "", `, "result": "ok"`))
			}},
		{"csv", history.CSV, "time,client,event,result,key\n",
			func(b []byte, e generated) []byte {
				key := ""
				if e.key >= 0 {
					key = fmt.Sprint("lock-", e.key)
				}
				return fmt.Appendf(b, "%d,C%d,%s,%s,%s\n", e.time, e.client, e.op, said(e, "call", "ok"), key)
			}},
		{"csv-dates", history.CSV, "time,client,event,result\n",
			func(b []byte, e generated) []byte {
				second := e.time / 1e9
				return fmt.Appendf(b, "2026-03-01T%02d:%02d:%02d.%09dZ,C%d,%s,%s\n", second/3600, second/60%60, second%60, e.time%1e9,
					e.client, e.op, said(e, "call", "ok"))
			}},
		{"edn-plain", history.EDN, "",
			func(b []byte, e generated) []byte {
				return fmt.Appendf(b, "{:index %d, :time %d, :type :%s, :process %d, :f :%s, :value nil}\n",
					e.index, e.time, said(e, "invoke", "ok"), e.client, e.op)
			}},
		// With all that Jepsen writes.
		{"edn-jepsen", history.EDN, "",
			func(b []byte, e generated) []byte {
				value := "nil"
				if e.key >= 0 {
					value = fmt.Sprintf("[lock-%d nil]", e.key)
				}
				return fmt.Appendf(b, "#jepsen.history.Op{:index %d, :time %d, :type :%s, :process %d, :f :%s, :value %s%s}\n",
					e.index, e.time, said(e, "invoke", "ok"), e.client, e.op, value,
					said(e, "", `, :node "n1", :error [:timeout "no {answer} \"yet\"" #{1 2}], :debug {:took 1.5M}`))
			}},
	}
}

// stream returns a history of so many operations of so many clients on so many
// locks, which is written while it is read. Who has acquired a lock releases it
// next.
func (s shape) stream(operations, clients, locks int) io.Reader {
	return &stream{shape: s, events: 2 * operations, clients: clients, locks: locks, buffer: []byte(s.head)}
}

type stream struct {
	shape
	events, clients, locks, done int
	buffer                       []byte // written and not yet read: what is behind at
	at                           int
}

func (s *stream) Read(p []byte) (int, error) {
	if s.at == len(s.buffer) {
		if s.done == s.events {
			return 0, io.EOF
		}
		s.buffer, s.at = s.buffer[:0], 0
	}
	for len(s.buffer) < len(p) && s.done < s.events {
		operation := s.done / 2
		e := generated{
			index: s.done, time: 500 * s.done, client: operation / 2 % s.clients, key: -1,
			op: [...]string{"acquire", "release"}[operation%2], returns: s.done%2 == 1,
		}
		if s.locks > 1 {
			e.key = operation / 2 % s.locks
		}
		s.buffer = s.event(s.buffer, e)
		s.done++
	}
	n := copy(p, s.buffer[s.at:])
	s.at += n
	return n, nil
}
