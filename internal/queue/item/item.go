// Package item encodes and decodes the items of a queue. An item contains the names of a strategy
// and a scenario, tags, the text of a script, seeds and bounded numbers. Nothing in an item is a path, a
// program or an argument list, so a worker that decodes an item of an unknown publisher only plays
// scripts with the strategies that it has.
//
// The names of servers and images in an item are names that the worker's own command line defines.
package item

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/lockfault/lockfault/internal/explore"
	"github.com/lockfault/lockfault/internal/queue"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// The limits of the numbers and texts of an item.
const (
	// MaxBody is the largest size of an item in bytes: a script of the largest size in JSON, and
	// some more.
	MaxBody = 2 * scenarios.MaxFile
	// MaxLease is the longest lease, and MaxLimit the longest real time for one cell or script.
	MaxLease = 24 * time.Hour
	MaxLimit = 24 * time.Hour
	// MaxName is the largest length of a name in bytes.
	MaxName = 255
)

// A Cell asks for one script with one strategy.
type Cell struct {
	Strategy string `json:"strategy"`
	Nodes    int    `json:"nodes,omitempty"` // 0 means the strategy's own number
	// Observed are tags that the strategy does not declare; each is one of [strategies.Tags].
	Observed []string `json:"observed,omitempty"`
	// Scenario names a scenario of the library, or of Script; the file name of Script is File.
	Scenario string `json:"scenario"`
	File     string `json:"file,omitempty"`
	Script   string `json:"script,omitempty"`
	// World is one of [Worlds]. Server and Image name a server program and an image that the worker
	// allows; empty means the worker's default.
	World    string `json:"world"`
	Server   string `json:"server,omitempty"`
	Image    string `json:"image,omitempty"`
	Sentinel bool   `json:"sentinel,omitempty"`

	Seed  uint64        `json:"seed"`
	Lease time.Duration `json:"lease_ns,omitempty"` // 0 means the script's own
	Limit time.Duration `json:"limit_ns,omitempty"` // of real time; 0 means the world's own
	// Isolated asks for a process that plays nothing else. Count asks for the counts of a soak
	// instead of a report, and History for the history.
	Isolated bool `json:"alone,omitempty"`
	Count    bool `json:"count,omitempty"`
	History  bool `json:"history,omitempty"`
}

// Worlds returns the worlds that an item may name: all but external servers.
func Worlds() []string { return []string{"sim", "process", "docker"} }

// A Search asks for a search, or one shard of a search.
type Search struct {
	Strategy string        `json:"strategy"`
	Nodes    int           `json:"nodes,omitempty"`
	Seed     uint64        `json:"seed"`
	Limit    time.Duration `json:"limit_ns,omitempty"` // of one script
	Bound    explore.Bound `json:"bound"`
}

// Item returns the queue item that encodes the cell, or an error if the cell is invalid.
func (c Cell) Item() (queue.Item, error) { return encode(queue.Cell, c) }

func (c Cell) words() []string { return []string{c.Strategy, c.Scenario, c.World} }

// Item returns the queue item that encodes the search, or an error if the search is invalid.
func (s Search) Item() (queue.Item, error) { return encode(queue.Search, s) }

func (s Search) words() []string {
	return []string{s.Strategy, fmt.Sprint(max(1, s.Bound.Shard)), fmt.Sprint(max(1, s.Bound.Shards))}
}

// ReadCell decodes an item of any origin. The error names the invalid part.
func ReadCell(of queue.Item) (Cell, error) { return read[Cell](of) }

// ReadSearch decodes an item of any origin. The error names the invalid part.
func ReadSearch(of queue.Item) (Search, error) { return read[Search](of) }

// A content is what an item asks for: a [Cell] or a [Search].
type content interface {
	check() error
	words() []string // of the item's name
}

func encode(kind queue.Kind, of content) (queue.Item, error) {
	if err := of.check(); err != nil {
		return queue.Item{}, err
	}
	body, err := json.Marshal(of)
	if err == nil && len(body) > MaxBody {
		err = fmt.Errorf("item: %d bytes, more than the limit of %d", len(body), MaxBody)
	}
	return queue.Item{Kind: kind, Name: name(body, of.words()...), Body: body}, err
}

func read[T content](of queue.Item) (c T, err error) {
	if err = decode(of, &c); err == nil {
		err = c.check()
	}
	if err != nil {
		var none T
		return none, err
	}
	// With another name, an answer to the item would pass for the answer to another item.
	if is := name(of.Body, c.words()...); of.Name != is {
		return c, fmt.Errorf("item: it is named %s, and its content has the name %s", of.Name, is)
	}
	return c, nil
}

// decode decodes exactly one JSON object without unknown fields.
func decode(of queue.Item, into any) error {
	if len(of.Body) > MaxBody {
		return fmt.Errorf("item: %d bytes, more than the limit of %d", len(of.Body), MaxBody)
	}
	d := json.NewDecoder(bytes.NewReader(of.Body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("item: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("item: more than one value")
	}
	return nil
}

// name returns the name of an item: some words, and a digest of its body.
func name(body []byte, words ...string) string {
	tame := func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}
	const most = 40 // bytes of a word
	var text strings.Builder
	for _, word := range words {
		word = strings.Map(tame, word)
		text.WriteString(word[:min(len(word), most)] + "-")
	}
	sum := sha256.Sum256(body)
	fmt.Fprintf(&text, "%x", sum[:12])
	return text.String()
}

func (c Cell) check() error {
	for _, n := range []struct {
		field, text string
		optional    bool
	}{{"strategy", c.Strategy, false}, {"scenario", c.Scenario, false}, {"file", c.File, true}, {"server", c.Server, true}, {"image", c.Image, true}} {
		if err := checkName(n.field, n.text); err != nil && !(n.optional && n.text == "") {
			return err
		}
	}
	switch {
	case !slices.Contains(Worlds(), c.World):
		return fmt.Errorf("item: world %q: must be one of %s", c.World, strings.Join(Worlds(), ", "))
	case (c.File == "") != (c.Script == ""):
		return errors.New("item: a script and its file's name go together")
	case strings.ContainsAny(c.File, `/\`):
		return fmt.Errorf("item: file %q: must be a name without a directory", c.File)
	case strings.ContainsAny(c.Server, `/\`):
		return fmt.Errorf("item: server %q: must be a name without a directory", c.Server)
	case len(c.Script) > scenarios.MaxFile || !utf8.ValidString(c.Script):
		return fmt.Errorf("item: script: must be UTF-8 of at most %d bytes", scenarios.MaxFile)
	}
	for i, tag := range c.Observed {
		if !slices.Contains(strategies.Tags(), tag) || slices.Contains(c.Observed[:i], tag) {
			return fmt.Errorf("item: observed tag %q: must be one of %s, once", tag, strings.Join(strategies.Tags(), ", "))
		}
	}
	return checkNumbers(c.Nodes, c.Lease, c.Limit)
}

func (s Search) check() error {
	if err := checkName("strategy", s.Strategy); err != nil {
		return err
	}
	if err := checkNumbers(s.Nodes, s.Bound.TTL, s.Limit); err != nil {
		return err
	}
	if err := s.Bound.Check(); err != nil {
		return fmt.Errorf("item: bound: %w", err)
	}
	return nil
}

func checkName(field, text string) error {
	switch {
	case text == "" || len(text) > MaxName:
		return fmt.Errorf("item: %s: must be a name of 1 to %d bytes", field, MaxName)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		return fmt.Errorf("item: %s %q: must be UTF-8 without control characters", field, text)
	}
	return nil
}

func checkNumbers(nodes int, lease, limit time.Duration) error {
	switch {
	case nodes < 0 || nodes > scenarios.MaxNodes:
		return fmt.Errorf("item: nodes %d: must be between 0 and %d", nodes, scenarios.MaxNodes)
	case lease < 0 || lease > MaxLease || lease%time.Millisecond != 0:
		return fmt.Errorf("item: lease %v: must be whole milliseconds, at most %v", lease, MaxLease)
	case limit < 0 || limit > MaxLimit:
		return fmt.Errorf("item: limit %v: must be between 0 and %v", limit, MaxLimit)
	}
	return nil
}
