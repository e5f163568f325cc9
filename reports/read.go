package reports

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/lockfault/lockfault/internal/jsonscan"
)

// Scan reads the results of that file and calls visit with each cell, in
// their order, without keeping any; a report of any size can so be drawn in
// little memory. An error of visit ends the reading.
func Scan(path string, visit func(Cell) error) (Head, error) {
	f, err := os.Open(path)
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
	decoder := json.NewDecoder(bufio.NewReader(r))
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
			err = scanCells(decoder, visit)
		} else {
			var value json.RawMessage
			err = jsonscan.Reason(decoder.Decode(&value))
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
	return head, nil
}

func (c Cell) name() CellName { return CellName{c.World, c.Strategy, c.Scenario} }

// check returns an error for what no run writes.
func (c Cell) check() error {
	name := fmt.Sprintf("the cell %s", c.name())
	switch {
	case c.Strategy == "" || c.Scenario == "" || c.World == "":
		return fmt.Errorf("%s lacks a name", name)
	case c.History != "" && !filepath.IsLocal(filepath.FromSlash(c.History)):
		return fmt.Errorf("%s has the history %q, which must be below the report's directory", name, c.History)
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

func scanCells(decoder *json.Decoder, visit func(Cell) error) error {
	if err := expect(decoder, '['); err != nil {
		return err
	}
	for decoder.More() {
		var cell Cell
		if err := decoder.Decode(&cell); err != nil {
			return jsonscan.Reason(err)
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
