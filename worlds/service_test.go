package worlds_test

import (
	"testing"

	"github.com/lockfault/lockfault/harness"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/services"
	"github.com/lockfault/lockfault/worlds"
)

// An order is played where its messages are told apart, and else the cell says what is missing.
func TestOrdersToServices(t *testing.T) {
	place := worlds.Place{World: worlds.Process}
	v, err := worlds.NewVenue(place, worlds.Programs{Services: services.All()})
	if err != nil {
		t.Fatal(err)
	}
	const (
		apart  = "line 3 is about what requests do, and those of etcd are not told apart"
		pushes = "line 3 is about messages that nobody asked for, which no order meets on links to postgres"
	)
	const (
		unasked   = "line 3 is about what requests do with the lock, and pgbouncer-advisory has no Query by which servers of pgbouncer would say whose it is"
		keys      = "line 3 is about requests that read or write a key of Redis, which postgres doesn't have: name a command"
		keysToo   = "line 3 is about requests that read or write a key of Redis, which zookeeper doesn't have: name a command"
		pushesToo = "line 3 is about messages that nobody asked for, which no order meets on links to zookeeper"
	)
	for _, c := range []struct{ order, redis, etcd, postgres, zookeeper string }{
		{"drop A before any", "", "", "", ""},
		{"drop A after INSERT", "line 3 is about INSERT, which Redis doesn't have", apart, "", "line 3 is about INSERT, which zookeeper doesn't have"},
		{"hold A before STARTUP UPDATE", "line 3 is about STARTUP, UPDATE, which Redis doesn't have", apart, "", "line 3 is about STARTUP, UPDATE, which zookeeper doesn't have"},
		{"hold A before EVAL SETNX", "", apart, "line 3 is about EVAL, SETNX, which postgres doesn't have", "line 3 is about EVAL, SETNX, which zookeeper doesn't have"},
		{"hold A before EVAL INSERT", "", apart, "", "line 3 is about EVAL, INSERT, which zookeeper doesn't have"},
		{"hold A before SET", "", apart, "", "line 3 is about SET, which zookeeper doesn't have"},
		{"drop A after GETDATA", "line 3 is about GETDATA, which Redis doesn't have", apart, "line 3 is about GETDATA, which postgres doesn't have", ""},
		{"hold A before CREATE DELETE", "line 3 is about CREATE, DELETE, which Redis doesn't have", apart, "", ""},
		{"hold A before EXISTS PING", "", apart, "line 3 is about EXISTS, PING, which postgres doesn't have", ""},
		{"hold A before INSERT or none", "", "", "", ""},
		{"hold A before GET or none", "", "", "", ""},
		{"hold A after taking", "", apart, "", ""},
		{"hold A before writing", "", apart, keys, keysToo},
		{"hold A before writing or none", "", "", "", ""},
		{"drop A messages", "", apart, pushes, pushesToo},
		{"drop A messages or none", "", "", "", ""},
	} {
		script, err := scenarios.Parse("x.txt", []byte("clients A\n\n"+c.order+"\nA acquire\n\nexpect none\n"))
		if err != nil {
			t.Fatal(err)
		}
		cell := harness.Cell{Script: script, Place: v}
		cell.Strategy, _ = lookup("fenced")
		wants := func(on, want string) {
			t.Helper()
			if ok, why := cell.Applies(); ok != (want == "") || !ok && why != want {
				t.Errorf("%s, on %s: %t, %q, want %q", c.order, on, ok, why, want)
			}
		}
		wants("redis", c.redis)
		for _, service := range services.All() {
			cell.Strategy = service.Strategies()[0]
			switch service.Name() {
			case "etcd":
				wants("etcd", c.etcd)
			case "postgres":
				wants("postgres", c.postgres)
			case "zookeeper":
				wants("zookeeper", c.zookeeper)
			case "pgbouncer":
				if c.order == "hold A after taking" {
					wants("pgbouncer", unasked)
				}
			}
		}
		cell.Place = nil
		cell.Strategy, _ = lookup("fenced")
		wants("redis in virtual time", c.redis)
	}
}
