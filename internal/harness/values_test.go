package harness_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/racetest"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// Values may be drawn from where nobody can seed: histories have names for them,
// whatever they look like and wherever they stand.
func TestRandomValuesOfAnyAlphabet(t *testing.T) {
	racetest.Skip(t)
	const take = `if redis.call("exists", KEYS[1]) == 1 then return 0 end `
	script := func(body string) func(string, strategies.Env) []any {
		return func(value string, env strategies.Env) []any {
			return []any{"EVAL", take + body + ` redis.call("pexpire", KEYS[1], ARGV[2]) return 1`, 1, env.Key, value, env.TTL.Milliseconds()}
		}
	}
	for name, alphabet := range map[string]string{
		"digits": "0123456789", "hex": "0123456789abcdef", "letters": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
		"bytes": "\x00\x01\n\r \"\\\x7f\x80\xfe\xff*$", "text": "-_{}:/ []",
	} {
		for place, command := range map[string]func(string, strategies.Env) []any{
			"SET": func(value string, env strategies.Env) []any {
				return []any{"SET", env.Key, value, "NX", "PX", env.TTL.Milliseconds()}
			},
			"HSETNX": func(value string, env strategies.Env) []any { return []any{"HSETNX", env.Key, "owner", value} },
			"field":  script(`redis.call("hset", KEYS[1], ARGV[1], 1)`),
			"member": script(`redis.call("sadd", KEYS[1], ARGV[1])`),
			"scored": script(`redis.call("zadd", KEYS[1], 7, ARGV[1])`),
			"list":   script(`redis.call("rpush", KEYS[1], ARGV[1])`),
			"text":   script(`redis.call("set", KEYS[1], "{" .. ARGV[1] .. "}")`),
		} {
			t.Run(name+" "+place, func(t *testing.T) {
				t.Parallel()
				strategy := strategies.Strategy{
					Name: "random", Summary: "a lock with random values", Source: "this test", Tags: []string{strategies.TagSingle},
					New: func(env strategies.Env) (strategies.Lock, error) {
						return polling{env, func(ctx context.Context, env strategies.Env) (bool, error) {
							won := any(int64(1))
							if place == "SET" {
								won = "OK"
							}
							return once(won, func(env strategies.Env) []any { return command(drawn(alphabet), env) })(ctx, env)
						}, del}, env.Check("random", 1)
					},
				}
				var first []byte
				for range 3 {
					for _, scenario := range []string{"contention", "late-release", "holder-crash"} {
						lib, err := scenarios.Lookup(scenario)
						if err != nil {
							t.Fatal(err)
						}
						got := harness.Play(t, harness.Cell{Strategy: strategy, Script: lib, Seed: 1})
						if got.Status == harness.Error {
							t.Fatal(got.Reason)
						}
						var b bytes.Buffer
						if err := checker.Encode(&b, got.History); err != nil {
							t.Fatal(err)
						}
						if scenario != "contention" {
							continue
						}
						if first == nil {
							first = b.Bytes()
						} else if !bytes.Equal(first, b.Bytes()) {
							t.Fatalf("the same seed gave\n%s\nand\n%s", first, b.Bytes())
						}
					}
				}
			})
		}
	}
}

// Where several of them stand in one key, their order there says nothing of their
// names, and doesn't get into a history.
func TestRandomValuesTogether(t *testing.T) {
	for place, commands := range map[string]struct {
		add    func(key, value string) []any
		remove string
	}{
		"hash": {func(key, value string) []any { return []any{"HSET", key, value, 1} }, "HDEL"},
		"set":  {func(key, value string) []any { return []any{"SADD", key, value} }, "SREM"},
		"zset": {func(key, value string) []any { return []any{"ZADD", key, 7, value} }, "ZREM"},
	} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			// Who finds one there that is not its own takes its own out again, a while later.
			attempt := func(ctx context.Context, env strategies.Env) (bool, error) {
				value := drawn("0123456789abcdef")
				count := map[string]string{"hash": "HLEN", "set": "SCARD", "zset": "ZCARD"}[place]
				if err := env.Nodes[0].Do(ctx, commands.add(env.Key, value)...).Err(); err != nil {
					return false, err
				}
				n, err := env.Nodes[0].Do(ctx, count, env.Key).Int()
				if err != nil || n == 1 {
					return n == 1, err
				}
				time.Sleep(30 * time.Millisecond)
				return false, env.Nodes[0].Do(ctx, commands.remove, env.Key, value).Err()
			}
			strategy := strategies.Strategy{
				Name: "together", Summary: "who is alone has the lock", Source: "this test", Tags: []string{strategies.TagSingle},
				New: func(env strategies.Env) (strategies.Lock, error) {
					return polling{env, attempt, del}, env.Check("together", 1)
				},
			}
			script, err := scenarios.Lookup("ten-contenders")
			if err != nil {
				t.Fatal(err)
			}
			var first []byte
			for range 2 {
				got := harness.Play(t, harness.Cell{Strategy: strategy, Script: script, Seed: 1})
				if got.Status == harness.Error {
					t.Fatal(got.Reason)
				}
				var b bytes.Buffer
				if err := checker.Encode(&b, got.History); err != nil {
					t.Fatal(err)
				}
				if first == nil {
					first = b.Bytes()
				} else if !bytes.Equal(first, b.Bytes()) {
					t.Fatalf("the same seed gave\n%s\nand\n%s", first, b.Bytes())
				}
			}
		})
	}
}

// drawn returns a random word of 20 letters, which is no number that means
// something.
func drawn(alphabet string) string {
	word := make([]byte, 20)
	_, _ = rand.Read(word) // it never fails
	for i, b := range word {
		word[i] = alphabet[int(b)%len(alphabet)]
	}
	return string(word)
}
