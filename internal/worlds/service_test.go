package worlds_test

import (
	"testing"

	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/services"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/scenarios"
)

// An order is played where its messages are told apart, and else the cell says what is missing.
func TestOrdersToServices(t *testing.T) {
	place := worlds.Place{World: worlds.Process}
	v, err := worlds.NewVenue(place, worlds.Programs{Services: services.All()})
	if err != nil {
		t.Fatal(err)
	}
	const unasked = "line 3 is about what requests do with the lock, and pgbouncer-advisory has no Query by which servers of pgbouncer would say whose it is"
	keys := func(service string) string {
		return "line 3 is about requests that read or write a key of Redis, which " + service + " doesn't have: name a command"
	}
	pushes := func(service string) string {
		return "line 3 is about messages that nobody asked for, which no order meets on links to " + service
	}
	none := func(what, service string) string {
		return "line 3 is about " + what + ", which " + service + " doesn't have"
	}
	for _, c := range []struct{ order, redis, etcd, postgres, zookeeper string }{
		{"drop A before any", "", "", "", ""},
		{"drop A after INSERT", none("INSERT", "Redis"), none("INSERT", "etcd"), "", none("INSERT", "zookeeper")},
		{"hold A before STARTUP UPDATE", none("STARTUP, UPDATE", "Redis"), none("STARTUP, UPDATE", "etcd"), "", none("STARTUP, UPDATE", "zookeeper")},
		{"hold A before EVAL SETNX", "", none("EVAL, SETNX", "etcd"), none("EVAL, SETNX", "postgres"), none("EVAL, SETNX", "zookeeper")},
		{"hold A before EVAL INSERT", "", none("EVAL, INSERT", "etcd"), "", none("EVAL, INSERT", "zookeeper")},
		{"hold A before SET", "", none("SET", "etcd"), "", none("SET", "zookeeper")},
		{"drop A after GETDATA", none("GETDATA", "Redis"), none("GETDATA", "etcd"), none("GETDATA", "postgres"), ""},
		{"drop A after TXN", none("TXN", "Redis"), "", none("TXN", "postgres"), none("TXN", "zookeeper")},
		{"hold A before CREATE DELETE", none("CREATE, DELETE", "Redis"), none("CREATE, DELETE", "etcd"), "", ""},
		{"hold A before EXISTS PING", "", none("EXISTS, PING", "etcd"), none("EXISTS, PING", "postgres"), ""},
		{"hold A before INSERT or none", "", "", "", ""},
		{"hold A before GET or none", "", "", "", ""},
		{"hold A after taking", "", "", "", ""},
		{"hold A before writing", "", keys("etcd"), keys("postgres"), keys("zookeeper")},
		{"hold A before writing or none", "", "", "", ""},
		{"drop A messages", "", pushes("etcd"), pushes("postgres"), pushes("zookeeper")},
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
