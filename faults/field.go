package faults

import (
	"strconv"
	"strings"
)

// Field is a part of a fault's line: the parser of scripts fills it, and the printer prints it. The
// fields of a fault are in the order of the line.
type Field struct {
	// Keyword precedes the value; empty means that nothing does.
	Keyword string
	// Optional states that the field may be absent: then the value is zero.
	Optional bool
	// Clause states that the field may stand in any order with other clauses, which are the last
	// fields of a line.
	Clause bool
	// Value is the place of the value: one of the types of this file that end in Field.
	Value Value
}

// Value is the place of a field's value.
type Value interface {
	// text returns the value as scripts write it, and isZero reports whether it is zero.
	text() string
	isZero() bool
}

// The places of values.
type (
	// TargetField is the name of the fault's target, which stands before its word.
	TargetField struct{ To *string }
	// ClientsField is a list of clients. Missing describes the first client if at least one must
	// be named; empty means that the list may be empty.
	ClientsField struct {
		To      *[]string
		Missing string
	}
	// NodesField is a list of nodes. After a keyword at least one must be named.
	NodesField struct{ To *[]string }
	// SpanField is a length of time.
	SpanField struct {
		To   *Span
		Rule SpanRule
	}
	// RateField is a number of bytes per time. Unlimited states that the word unlimited is valid.
	RateField struct {
		To        *Rate
		Unlimited bool
	}
	// DriftField is the rate of a clock.
	DriftField struct{ To *float64 }
	// FlagField is a word, or several, that is present or not.
	FlagField struct {
		To   *bool
		Word string
	}
	// ChoiceField is one of several words, each with fields of its own.
	ChoiceField struct {
		To      *ReplicationMode
		Options []Option
	}
	// MessagesField is the way of messages and the commands or the effect that select them.
	MessagesField struct{ To *Match }
	// CountField is a number of messages.
	CountField struct{ To *int }
)

// Option is a word of a [ChoiceField] and the fields that follow it.
type Option struct {
	Word   ReplicationMode
	Fields []Field
}

// SpanRule is the set of spans that are valid for a field.
type SpanRule int

// The rules of spans.
const (
	PositiveSpan    SpanRule = iota // above zero, without a sign
	NotNegativeSpan                 // zero or above, without a sign
	SignedSpan                      // any, and printed with its sign
)

func (v TargetField) text() string { return *v.To }
func (v TargetField) isZero() bool { return *v.To == "" }

func (v ClientsField) text() string { return strings.Join(*v.To, " ") }
func (v ClientsField) isZero() bool { return len(*v.To) == 0 }

func (v NodesField) text() string { return strings.Join(*v.To, " ") }
func (v NodesField) isZero() bool { return len(*v.To) == 0 }

// A signed span shows its sign, and so in which direction a clock moves.
func (v SpanField) text() string {
	text := v.To.String()
	if v.Rule == SignedSpan && text[0] != '-' {
		text = "+" + text
	}
	return text
}
func (v SpanField) isZero() bool { return v.To.IsZero() }

func (v RateField) text() string { return v.To.String() }
func (v RateField) isZero() bool { return *v.To == Rate{} }

func (v DriftField) text() string { return strconv.FormatFloat(*v.To, 'f', -1, 64) }
func (v DriftField) isZero() bool { return *v.To == 0 }

func (v FlagField) text() string { return v.Word }
func (v FlagField) isZero() bool { return !*v.To }

func (v ChoiceField) text() string {
	line := []byte(*v.To)
	for _, option := range v.Options {
		if option.Word == *v.To {
			line = appendFields(line, option.Fields)
		}
	}
	return string(line)
}
func (v ChoiceField) isZero() bool { return *v.To == "" }

func (v MessagesField) text() string {
	m := v.To
	switch {
	case m.Way == Messages:
		return string(m.Way)
	case m.Effect != "":
		return string(m.Way) + " " + string(m.Effect)
	case len(m.Commands) == 0:
		return string(m.Way) + " any"
	}
	return string(m.Way) + " " + strings.Join(m.Commands, " ")
}
func (v MessagesField) isZero() bool { return false }

func (v CountField) text() string { return strconv.Itoa(*v.To) }
func (v CountField) isZero() bool { return *v.To == 0 }

// line returns the fault as scripts write it.
func line(f Fault) string {
	d := f.Definition()
	fields := d.Fields(f)
	var text []byte
	if d.Target.PutsNamesFirst() {
		text = append(text, fields[0].Value.text()...)
		text = append(text, ' ')
		fields = fields[1:]
	}
	return string(appendFields(append(text, d.Word...), fields))
}

// appendFields appends the fields that are present, each after a blank.
func appendFields(text []byte, fields []Field) []byte {
	for _, field := range fields {
		if field.Value.isZero() && field.absent() {
			continue
		}
		if field.Keyword != "" {
			text = append(append(text, ' '), field.Keyword...)
		}
		text = append(append(text, ' '), field.Value.text()...)
	}
	return text
}

// absent reports whether a field with a zero value is not written.
func (f Field) absent() bool {
	switch f.Value.(type) {
	case ClientsField, NodesField, FlagField:
		return true
	}
	return f.Optional
}

// The fields that several faults have.
func target(name *string) Field        { return Field{Value: TargetField{name}} }
func clientList(list *[]string) Field  { return Field{Value: ClientsField{To: list}} }
func someClients(list *[]string) Field { return Field{Value: ClientsField{list, "a client"}} }
func nodeList(list *[]string) Field    { return Field{Value: NodesField{list}} }
func nodesAfter(word string, list *[]string) Field {
	return Field{Keyword: word, Optional: true, Value: NodesField{list}}
}
func spanOf(to *Span, rule SpanRule) Field { return Field{Value: SpanField{to, rule}} }
func jitterOf(to *Span) Field {
	return Field{Keyword: "jitter", Optional: true, Value: SpanField{to, PositiveSpan}}
}

// clause returns the field as a clause, which may be absent.
func clause(f Field) Field {
	f.Optional, f.Clause = true, true
	return f
}
