package history

import (
	"encoding/binary"

	"github.com/lockfault/lockfault/internal/jsonscan"
)

// A jsonField is a field of a line, as a bit.
type jsonField uint32

const (
	fieldIndex jsonField = 1 << iota
	fieldTime
	fieldKind
	fieldClient
	fieldOp
	fieldCall
	fieldResult
	fieldToken
	fieldUntil
	fieldAccepted
	fieldKey
	fieldPermits
	fieldShared
	fieldNode
	fieldServer
	fieldOwner
	fieldValue
	fieldCause
	// The values of the remaining fields are not used.
	fieldError
	fieldConn
	fieldDirection
	fieldCommand
	fieldReply
	fieldSent
	fieldSilent
	fieldExpires
	fieldText
	fieldTook
	fieldLine

	truths       = fieldAccepted | fieldShared | fieldSilent
	textFields   = fieldKind | fieldClient | fieldOp | fieldResult | fieldKey | fieldNode | fieldServer | fieldOwner | fieldValue | fieldCause | ignoredTexts
	ignoredTexts = fieldError | fieldDirection | fieldCommand | fieldReply | fieldText
	numberFields = fieldIndex | fieldTime | fieldCall | fieldToken | fieldUntil | fieldPermits |
		fieldConn | fieldSent | fieldExpires | fieldTook | fieldLine
)

// jsonFieldOf returns the field with exactly the given name; 0 if there is none.
func jsonFieldOf(name []byte) jsonField {
	switch string(name) { // does not allocate
	case "i":
		return fieldIndex
	case "t":
		return fieldTime
	case "op":
		return fieldOp
	case "key":
		return fieldKey
	case "kind":
		return fieldKind
	case "call":
		return fieldCall
	case "client":
		return fieldClient
	case "result":
		return fieldResult
	case "token":
		return fieldToken
	case "until":
		return fieldUntil
	case "accepted":
		return fieldAccepted
	case "permits":
		return fieldPermits
	case "shared":
		return fieldShared
	case "node":
		return fieldNode
	case "server":
		return fieldServer
	case "error":
		return fieldError
	case "conn":
		return fieldConn
	case "direction":
		return fieldDirection
	case "command":
		return fieldCommand
	case "reply":
		return fieldReply
	case "sent":
		return fieldSent
	case "silent":
		return fieldSilent
	case "owner":
		return fieldOwner
	case "value":
		return fieldValue
	case "expires":
		return fieldExpires
	case "cause":
		return fieldCause
	case "text":
		return fieldText
	case "took":
		return fieldTook
	case "line":
		return fieldLine
	}
	return 0
}

// scan decodes a line in one pass, without copying. scan returns false for every invalid line and
// for rare constructs (escapes in a field that is used, null, numbers of too many digits); some
// fields of e may be set by then. A line for which scan returns true is decoded as encoding/json
// decodes it, at a tenth of the cost.
func scan(b []byte, e *jsonEvent) bool {
	i := jsonscan.Blanks(b, 0)
	if i >= len(b) || b[i] != '{' {
		return false
	}
	i++
	seen := jsonField(0)
	for {
		if i = jsonscan.Blanks(b, i); i >= len(b) || b[i] != '"' {
			return false
		}
		field, end := scanName(b, i+1)
		if field == 0 || seen&field != 0 {
			return false
		}
		seen |= field
		if i = jsonscan.Blanks(b, end+1); i >= len(b) || b[i] != ':' {
			return false
		}
		if i = jsonscan.Blanks(b, i+1); i >= len(b) {
			return false
		}
		if i = e.scanValue(b, i, field); i < 0 {
			return false
		}
		if i = jsonscan.Blanks(b, i); i >= len(b) {
			return false
		}
		switch b[i] {
		case ',':
			i++
		case '}':
			return jsonscan.Blanks(b, i+1) == len(b)
		default:
			return false
		}
	}
}

// scanName returns the field whose name begins at i, after a quote, and the position of the closing
// quote; 0 for an unknown name.
func scanName(b []byte, i int) (jsonField, int) {
	if i+8 <= len(b) {
		// Compare the first fields of an operation, with the quote, in one step.
		switch x := binary.LittleEndian.Uint64(b[i:]); {
		case x&0xffff == 'i'|'"'<<8:
			return fieldIndex, i + 1
		case x&0xffff == 't'|'"'<<8:
			return fieldTime, i + 1
		case x&0xffffff == 'o'|'p'<<8|'"'<<16:
			return fieldOp, i + 2
		case x&0xffffffffff == 'k'|'i'<<8|'n'<<16|'d'<<24|'"'<<32:
			return fieldKind, i + 4
		case x&0xffffffffff == 'c'|'a'<<8|'l'<<16|'l'<<24|'"'<<32:
			return fieldCall, i + 4
		case x&0xffffffffffffff == 'c'|'l'<<8|'i'<<16|'e'<<24|'n'<<32|'t'<<40|'"'<<48:
			return fieldClient, i + 6
		case x&0xffffffffffffff == 'r'|'e'<<8|'s'<<16|'u'<<24|'l'<<32|'t'<<40|'"'<<48:
			return fieldResult, i + 6
		}
	}
	end := jsonscan.Plain(b, i)
	if end >= len(b) || b[end] != '"' {
		return 0, end
	}
	return jsonFieldOf(b[i:end]), end
}

// scanValue reads the value of a field, which begins at i, and returns the position after it; -1 if
// the value is not plain or has the wrong type.
func (e *jsonEvent) scanValue(b []byte, i int, field jsonField) int {
	switch c := b[i]; {
	case c == '"':
		text, end := jsonscan.Text(b, i+1, field&ignoredTexts != 0)
		if end < 0 || field&textFields == 0 {
			return -1
		}
		switch field {
		case fieldKind:
			e.kind = text
		case fieldClient:
			e.client = text
		case fieldOp:
			e.op = text
		case fieldResult:
			e.result = text
		case fieldKey:
			e.key = text
		case fieldNode:
			e.node = text
		case fieldServer:
			e.server = text
		case fieldOwner:
			e.owner = text
		case fieldValue:
			e.value = text
		case fieldCause:
			e.cause = text
		}
		return end
	case field&truths != 0:
		switch {
		case len(b)-i >= 4 && string(b[i:i+4]) == "true":
			switch field {
			case fieldAccepted:
				e.accepted = true
			case fieldShared:
				e.shared = true
			}
			return i + 4
		case len(b)-i >= 5 && string(b[i:i+5]) == "false":
			return i + 5
		}
		return -1
	case field&numberFields == 0:
		return -1
	}
	n, end := jsonscan.Number(b, i)
	if end < 0 {
		return -1
	}
	switch field {
	case fieldIndex:
		e.index, e.hasIndex = n, true
	case fieldTime:
		e.time, e.hasTime = n, true
	case fieldCall:
		e.call = n
	case fieldToken:
		e.token = n
	case fieldUntil:
		e.until = n
	case fieldPermits:
		e.permits = n
	}
	return end
}
