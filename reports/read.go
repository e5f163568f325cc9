package reports

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"path/filepath"

	"github.com/lockfault/lockfault/internal/input"
	"github.com/lockfault/lockfault/internal/jsonscan"
)

// Scan reads a results file and calls visit with each cell, in the order of the file. Scan keeps no
// cells, so that a report of any size can be drawn in little memory. Scan stops at the first error
// of visit and returns it. A symbolic link that leads out of the file's directory is an error: see
// [ResultsIn] for a path that a user typed.
func Scan(path string, visit func(Cell) error) (Head, error) {
	f, err := openBeside(path, input.Stream)
	if err != nil {
		return Head{}, fmt.Errorf("reports: %w", err)
	}
	defer f.Close()
	head, err := scan(f, visit)
	if err != nil {
		return Head{}, fmt.Errorf("reports: read %s: %w", path, err)
	}
	return head, nil
}

func scan(r io.Reader, visit func(Cell) error) (Head, error) {
	values := newValues(r)
	decoder := values.decoder
	if err := expect(decoder, '{'); err != nil {
		return Head{}, err
	}
	fields := map[string]json.RawMessage{}
	cells := false
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return Head{}, jsonscan.Reason(err)
		}
		if _, twice := fields[key.(string)]; twice || key == "cells" && cells {
			return Head{}, fmt.Errorf("it has %q twice", key)
		}
		cells = cells || key == "cells"
		if key == "cells" {
			err = scanCells(values, visit)
		} else {
			var value json.RawMessage
			err = plain(values.next(&value))
			fields[key.(string)] = value
		}
		if err != nil {
			return Head{}, err
		}
	}
	if err := expect(decoder, '}'); err != nil {
		return Head{}, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Head{}, errors.New("there is something behind its end")
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return Head{}, err
	}
	var head Head
	if err := json.Unmarshal(text, &head); err != nil {
		return Head{}, jsonscan.Reason(err)
	}
	if head.Tool != Tool {
		return Head{}, fmt.Errorf("these are not the results of %s", Tool)
	}
	if !cells {
		return Head{}, errors.New("it has no cells")
	}
	for _, s := range head.Scripts {
		if len(s.Text) > input.Text {
			return Head{}, fmt.Errorf("the script %s has %d bytes, more than the limit of 1 MiB", shown(s.Name), len(s.Text))
		}
	}
	return head, nil
}

func (c Cell) name() CellName { return CellName{c.World, c.Strategy, c.Scenario} }

// values reads the values of a JSON text. The text may have any size, but each value is bounded.
type values struct {
	decoder *json.Decoder
	budget  *input.Budget
}

func newValues(r io.Reader) *values {
	budget := &input.Budget{R: r, Most: input.Value}
	return &values{json.NewDecoder(budget), budget}
}

// next decodes the next value into the variable to which to points.
func (v *values) next(to any) error {
	v.budget.Renew()
	return v.decoder.Decode(to)
}

// check returns an error for a cell that no run can have written.
func (c Cell) check() error {
	name := fmt.Sprintf("the cell %s", c.name())
	switch {
	case c.Strategy == "" || c.Scenario == "" || c.World == "":
		return fmt.Errorf("%s lacks a name", name)
	case c.History != "" && !filepath.IsLocal(filepath.FromSlash(c.History)):
		return fmt.Errorf("%s: the path %q of its history leads out of the report's directory", name, c.History)
	case c.Verdict == Held && len(c.Anomalies) > 0:
		return fmt.Errorf("%s held, and has anomalies", name)
	case c.Verdict == Violated && len(c.Anomalies) == 0:
		return fmt.Errorf("%s is violated, and has no anomaly", name)
	}
	switch c.Verdict {
	case Held, Violated, Unknown, Error, NotApplicable:
		return nil
	}
	return fmt.Errorf("%s has the verdict %q, which there is none of", name, c.Verdict)
}

func scanCells(values *values, visit func(Cell) error) error {
	decoder := values.decoder
	if err := expect(decoder, '['); err != nil {
		return err
	}
	for decoder.More() {
		var cell Cell
		if err := values.next(&cell); err != nil {
			return plain(err)
		}
		if err := cell.check(); err != nil {
			return err
		}
		if err := visit(cell); err != nil {
			return err
		}
	}
	return expect(decoder, ']')
}

func expect(decoder *json.Decoder, delim json.Delim) error {
	token, err := decoder.Token()
	if err != nil {
		return jsonscan.Reason(err)
	}
	if token == nil {
		token = "null"
	}
	if token != delim {
		return fmt.Errorf("there is %v where %v should be", token, delim)
	}
	return nil
}

// plain returns the error of reading JSON in the words of a reader, also for a value that is too
// large.
func plain(err error) error {
	if errors.As(err, new(*input.TooLargeError)) {
		return fmt.Errorf("a value has %w", err)
	}
	return jsonscan.Reason(err)
}
