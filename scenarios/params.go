package scenarios

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockfault/lockfault/faults"
)

// Param is a parameter of a script. Settings and steps refer to it as $NAME. Its value is At unless
// the caller chooses another value.
type Param struct {
	Name  string
	Range Range
	At    string // in the script language
}

// String returns the parameter in the script language, without the word param.
func (p Param) String() string {
	text := p.Name + " " + p.Range.String()
	if p.At != p.Range.Text(p.Range.To) {
		text += " at " + p.At
	}
	return text
}

// Range is the range of a [Param]: numbers with one unit, including both ends.
type Range struct {
	From, To float64
	// Unit is the unit of the numbers: ttl, empty, or "time" for durations, whose numbers are
	// nanoseconds.
	Unit string
	// Whole restricts the values to whole numbers.
	Whole bool
}

// unitTime is the unit of Go durations.
const unitTime = "time"

// ParseRange parses a range such as 0.1ttl..2ttl, 1s..1m or 1..5. An end that is 0 may omit its
// unit.
func ParseRange(text string) (Range, error) {
	from, to, two := strings.Cut(text, "..")
	if !two {
		return Range{}, fmt.Errorf("%q is no range such as 0.1ttl..2ttl", text)
	}
	var r Range
	a, unitA, errA := quantity(from)
	b, unitB, errB := quantity(to)
	switch {
	case errA != nil || errB != nil:
		return Range{}, cmp.Or(errA, errB)
	case a == 0 && unitA == "":
		unitA = unitB
	case b == 0 && unitB == "":
		unitB = unitA
	}
	r = Range{From: a, To: b, Unit: unitA}
	switch {
	case unitA != unitB:
		return Range{}, fmt.Errorf("%q is from one unit to another: give both ends in the same, such as ttl", text)
	case a >= b:
		return Range{}, fmt.Errorf("%q has nothing in it: give the lower end first", text)
	case b-a > 1e18 || math.Abs(a) > 1e18:
		return Range{}, fmt.Errorf("%q is too large", text)
	}
	r.Whole = unitA == "" && !strings.Contains(from, ".") && !strings.Contains(to, ".")
	if r.Text(a) == r.Text(b) {
		return Range{}, fmt.Errorf("%q is too small: its ends are written alike", text)
	}
	return r, nil
}

// quantity parses a number with its unit: a duration, a number of TTLs or a number without a unit.
func quantity(text string) (n float64, unit string, err error) {
	if d, err := time.ParseDuration(text); err == nil && strings.Trim(text, "+-0.") != "" {
		return float64(d), unitTime, nil
	}
	number, ttls := strings.CutSuffix(text, "ttl")
	if ttls {
		unit = "ttl"
	}
	n, err = strconv.ParseFloat(number, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) || strings.ContainsAny(number, "xXpP_") {
		return 0, "", fmt.Errorf("%q is neither a number such as 1.5 nor a length of time such as 30s, 200ms or 1.1ttl", text)
	}
	return n, unit, nil
}

// String returns the range in the script language. [ParseRange] parses the result.
func (r Range) String() string { return r.Text(r.From) + ".." + r.Text(r.To) }

// Of returns the rounded value of the range at step i of n, where step 0 is From and step n is To.
func (r Range) Of(i, n int) float64 { return r.round(r.From + (r.To-r.From)*float64(i)/float64(n)) }

// round rounds a number to the precision of the script language. Durations are rounded to 1 ms if
// the range spans at least 1 s, otherwise to 1 µs; other numbers to six decimals, or to whole
// numbers if Whole is set.
func (r Range) round(v float64) float64 {
	to := 1e-6
	switch {
	case r.Whole:
		to = 1
	case r.Unit == unitTime && r.To-r.From >= float64(time.Second):
		to = float64(time.Millisecond)
	case r.Unit == unitTime:
		to = float64(time.Microsecond)
	}
	if r.Unit != unitTime && !r.Whole {
		return math.Round(v*1e6) / 1e6
	}
	return math.Round(v/to) * to
}

// Text returns a number of the range in the script language.
func (r Range) Text(v float64) string {
	v = r.round(v)
	if r.Unit == unitTime {
		return faults.Span{Abs: time.Duration(v)}.String()
	}
	text := strconv.FormatFloat(v+0, 'f', -1, 64)
	if r.Unit == "" && !r.Whole && !strings.Contains(text, ".") {
		text += ".0" // otherwise the parser would read a whole number, and a range of whole numbers
	}
	return text + r.Unit
}

// param parses "param pause 0ttl..2ttl at 1.1ttl", after its first word.
func (p *parser) param(c *cursor) error {
	name := c.next()
	switch {
	case name.text == "":
		return c.wrong(name, "a name is missing at the end of the line")
	case len(name.text) > maxName:
		return c.wrong(name, fmt.Sprintf("the name of a param has at most %d letters", maxName))
	case slices.Contains([]string{"verdict", "anomalies"}, name.text):
		return c.wrong(name, "a param is not called %q: a map has a column of that name")
	case !validParam(name.text):
		return c.wrong(name, "%q is no name of a param: small letters, digits and '-' make one, a letter first")
	case len(p.script.Params) == maxParams:
		return c.wrong(name, fmt.Sprintf("a script has at most %d params", maxParams))
	case c.peek() == "":
		return c.unexpected("a range such as 0.1ttl..2ttl")
	}
	at := c.next()
	r, err := ParseRange(at.text)
	if err != nil {
		return c.refuse(at, err.Error())
	}
	param := Param{Name: name.text, Range: r, At: r.Text(r.To)}
	if c.skip("at") {
		value := c.next()
		n, unit, err := quantity(value.text)
		if n == 0 && unit == "" {
			unit = r.Unit
		}
		switch {
		case value.text == "":
			return c.wrong(value, "a value is missing at the end of the line")
		case err != nil:
			return c.refuse(value, err.Error())
		case unit != r.Unit:
			return c.wrong(value, "%q is of another unit than the range")
		case r.Whole && n != math.Trunc(n):
			return c.wrong(value, "%q is no whole number, as the range's ends are")
		case n < r.From || n > r.To:
			return c.wrong(value, "%q is out of the range")
		}
		param.At = r.Text(n)
	}
	p.script.Params = append(p.script.Params, param)
	return nil
}

// maxParams is the maximum number of parameters of a script.
const maxParams = 8

func validParam(name string) bool {
	return name != "" && name[0] >= 'a' && name[0] <= 'z' &&
		madeOf(name, func(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' })
}

// maxName is the maximum length of a parameter's name.
const maxName = 30

// fill replaces the parameters of a line with their values. fill returns the original line, or an
// empty string if the line has no parameters.
func (p *parser) fill(l *line) (written string, err error) {
	if len(l.words) == 0 || !slices.ContainsFunc(l.words, func(w word) bool { return strings.Contains(w.text, "$") }) {
		return "", nil
	}
	switch l.words[0].text {
	case "expect", "param", "for", "elsewhere", "measure", "stop":
		return "", nil // the parsers of these lines report the error
	}
	var was []string
	words := slices.Clone(l.words)
	for i, w := range words {
		was = append(was, w.text)
		sign, name, open := strings.Cut(w.text, "$")
		if !open || sign != "" && sign != "+" && sign != "-" {
			continue
		}
		at := slices.IndexFunc(p.script.Params, func(x Param) bool { return x.Name == name })
		if at < 0 {
			c := &cursor{file: p.file, line: *l}
			var names []string
			for _, x := range p.script.Params {
				names = append(names, "$"+x.Name)
			}
			return "", c.wrong(w, "%q is no param of the lines above: one such as param pause 0.1ttl..2ttl makes $pause one", names...)
		}
		words[i].text = sign + p.script.Params[at].At
	}
	l.words = words
	return strings.Join(was, " "), nil
}

// open stores the text with values of every line that was written with parameters.
func (p *parser) open() {
	keep := func(number int, text string) {
		if n, ok := p.script.layout.notes[number]; ok && n.written != "" {
			n.filled = text
			p.script.layout.notes[number] = n
		}
	}
	for _, s := range p.script.settingLines() {
		keep(s.line, s.text)
	}
	for _, g := range grouped(p.script.Steps) {
		keep(g.line, g.text)
	}
}

// With returns the text of the script with other values for the named parameters. The values must
// have the units of the ranges; [Parse] reports whether the resulting script is valid.
func (s *Script) With(values map[string]string) []byte {
	of := *s
	of.Params = slices.Clone(s.Params)
	for i, p := range of.Params {
		if v, ok := values[p.Name]; ok {
			of.Params[i].At = v
		}
	}
	return of.Format()
}

// OpenTTL reports whether the lease is the value of a parameter.
func (s *Script) OpenTTL() bool {
	for _, setting := range s.layout.settings {
		if setting.key == "ttl" {
			return s.layout.notes[setting.line].written != ""
		}
	}
	return false
}

// Uses reports whether the script uses the parameter.
func (s *Script) Uses(param string) bool {
	for _, n := range s.layout.notes {
		for _, w := range strings.Fields(n.written) {
			if strings.TrimLeft(w, "+-") == "$"+param {
				return true
			}
		}
	}
	return false
}

// OpenSpan returns the text of a script in which a duration becomes a parameter. The parameter
// replaces the nth duration of the line with the given number, both counted from 1.
func OpenSpan(file string, src []byte, number, nth int, name string, r Range) ([]byte, error) {
	lines, err := lex(file, "script", src)
	if err != nil {
		return nil, err
	}
	if number < 1 || number > len(lines) {
		return nil, fmt.Errorf("%s has no line %d: it has %d", file, number, len(lines))
	}
	var spans []word
	for _, w := range lines[number-1].words {
		if _, err := faults.ParseSpan(w.text); err == nil {
			spans = append(spans, w)
		}
	}
	if nth < 1 || nth > len(spans) {
		return nil, fmt.Errorf("line %d of %s has %d lengths of time, and %d was asked for", number, file, len(spans), nth)
	}
	found := spans[nth-1]
	n, unit, _ := quantity(found.text)
	at := ""
	if (unit == r.Unit || n == 0) && n >= r.From && n <= r.To {
		at = " at " + r.Text(n)
	}
	var out strings.Builder
	declared := false
	for i, text := range strings.SplitAfter(string(src), "\n") {
		if i < len(lines) && len(lines[i].words) > 0 && !declared {
			fmt.Fprintf(&out, "param %s %v%s\n", name, r, at)
			declared = true
		}
		if i == number-1 {
			runes := []rune(text)
			from := found.column - 1
			if i == 0 && strings.HasPrefix(text, "\ufeff") {
				from++
			}
			text = string(runes[:from]) + "$" + name + string(runes[from+len([]rune(found.text)):])
		}
		out.WriteString(text)
	}
	return []byte(out.String()), nil
}
