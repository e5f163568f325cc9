package reports

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
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
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return Head{}, err
		}
		if key == "cells" {
			err = scanCells(decoder, visit)
		} else {
			var value json.RawMessage
			err = decoder.Decode(&value)
			fields[key.(string)] = value
		}
		if err != nil {
			return Head{}, err
		}
	}
	if err := expect(decoder, '}'); err != nil {
		return Head{}, err
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return Head{}, err
	}
	var head Head
	if err := json.Unmarshal(text, &head); err != nil {
		return Head{}, err
	}
	if head.Tool != Tool {
		return Head{}, fmt.Errorf("these are not the results of %s", Tool)
	}
	return head, nil
}

func scanCells(decoder *json.Decoder, visit func(Cell) error) error {
	if err := expect(decoder, '['); err != nil {
		return err
	}
	for decoder.More() {
		var cell Cell
		if err := decoder.Decode(&cell); err != nil {
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
		return err
	}
	if token != delim {
		return fmt.Errorf("there is %v where %v should be", token, delim)
	}
	return nil
}
