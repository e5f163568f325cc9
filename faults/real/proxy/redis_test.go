package proxy_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/faults/real/proxy"
)

// An ordinary client works through a gate: handshake, pipelines, scripts,
// transactions, and subscriptions, whose replies are pushes in RESP3.
func TestAnOrdinaryClient(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		t.Run([]string{2: "RESP2", 3: "RESP3"}[protocol], func(t *testing.T) {
			noneLeft(t)
			upstream := miniredis.RunT(t)
			tap := newTap(t)
			l, err := newProxies(t).Open("A-n1", upstream.Addr(), tap)
			must(t, err)
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			client := redis.NewClient(&redis.Options{Addr: l.Addr(), Protocol: protocol})
			defer client.Close()
			tap.hold(func(m *proxy.Message) bool {
				if m.Request && m.Words[0] == "set" {
					go m.Forward()
					return true
				}
				return false
			})

			must(t, client.SetNX(ctx, "lock", "A", 0).Err())
			_, err = client.Pipelined(ctx, func(p redis.Pipeliner) error {
				for range 100 {
					p.Incr(ctx, "n")
				}
				return nil
			})
			must(t, err)
			_, err = client.TxPipelined(ctx, func(p redis.Pipeliner) error {
				p.Set(ctx, "large", strings.Repeat("x\r\n", 100_000), 0)
				p.Get(ctx, "large")
				return nil
			})
			must(t, err)
			if n, err := redis.NewScript(`return redis.call("INCR", KEYS[1])`).Run(ctx, client, []string{"n"}).Int(); n != 101 || err != nil {
				t.Errorf("the script returned %d, %v; want 101", n, err)
			}
			subscription := client.Subscribe(ctx, "channel")
			defer subscription.Close()
			_, err = subscription.Receive(ctx) // the confirmation
			must(t, err)
			must(t, client.Publish(ctx, "channel", "hello").Err())
			if m, err := subscription.ReceiveMessage(ctx); err != nil || m.Payload != "hello" {
				t.Errorf("received %v, %v; want hello", m, err)
			}
			if seen := tap.messages(); !slices.ContainsFunc(seen, func(s string) bool { return strings.HasPrefix(s, "> set lock A") }) {
				t.Errorf("the tap saw no SET, but %.1000q", seen)
			}
		})
	}
}
