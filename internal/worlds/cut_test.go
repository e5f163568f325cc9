package worlds_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/faults/real/proxy"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/all"
)

// plain is a service that has no servers, and cluster one whose nodes talk to one another.
type (
	plain   struct{ name string }
	cluster struct {
		plain
		here bool
	}
)

func (s plain) Name() string                    { return s.name }
func (plain) Login(string) real.Login           { return real.Login{} }
func (plain) Speaks() proxy.Protocol            { return proxy.RESP{} }
func (plain) Commands() []string                { return nil }
func (plain) Summary() string                   { return "" }
func (plain) Strategies() []strategies.Strategy { return nil }
func (plain) Check(context.Context) error       { return nil }
func (plain) Sweep(string)                      {}
func (plain) Lease() time.Duration              { return time.Second }
func (plain) Host(context.Context, int, int, string) (worlds.Host, error) {
	return nil, errors.New("it has none")
}
func (c cluster) Clusters() bool { return c.here }

// Where nodes don't talk to one another, or can't be kept from it here, what cuts them off is not applicable, which is
// known before anything is started; a heal that names nobody is of clients' links, too, and is taken.
func TestWhoseNodesCanBeCutOff(t *testing.T) {
	programs := worlds.Programs{Services: []worlds.Service{plain{"plain"}, cluster{plain{"cluster"}, true}, cluster{plain{"elsewhere"}, false}}}
	redlock, _ := all.Registry().Lookup("redlock")
	on := func(service string) strategies.Strategy {
		return strategies.Strategy{Name: "lock", Service: service, Nodes: 3}
	}
	process := worlds.Place{World: worlds.Process}
	for _, test := range []struct {
		name  string
		lock  strategies.Strategy
		place *worlds.Place // nil is virtual time
		says  string        // of each line; empty if it is taken
	}{
		{"Redis in virtual time", redlock, nil, "line 4: nodes of Redis don't talk to one another, so there is nothing to cut"},
		{"Redis", redlock, &process, "line 4: nodes of Redis don't talk to one another, so there is nothing to cut"},
		{"Redis in containers", redlock, &worlds.Place{World: worlds.Docker}, "line 4: nodes of Redis don't talk to one another, so there is nothing to cut"},
		{"a Redis of somebody's", redlock, &worlds.Place{World: worlds.External, Redis: []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", "127.0.0.1:4", "127.0.0.1:5"}}, "line 4: nodes of Redis don't talk to one another, so there is nothing to cut"},
		{"another service", on("plain"), &process, "line 4: nodes of plain don't talk to one another, so there is nothing to cut"},
		{"a cluster", on("cluster"), &process, ""},
		{"a cluster on another system", on("elsewhere"), &process, "line 4: members of elsewhere can be cut off from one another on Linux alone, where the system says which of them has dialled"},
	} {
		for _, line := range []string{"partition n1 from n2 n3", "partition n1", "heal n1", "heal n1 from quorum", "heal", "heal A", "partition A from n1"} {
			t.Run(test.name+": "+line, func(t *testing.T) {
				script, err := scenarios.Parse("x.txt", []byte("clients A\nnodes 3\nA acquire\n"+line+"\nexpect none\n"))
				if err != nil {
					t.Fatal(err)
				}
				cell := harness.Cell{Strategy: test.lock, Script: script}
				if test.place != nil {
					v, err := worlds.NewVenue(*test.place, programs)
					if err != nil {
						t.Fatal(err)
					}
					defer v.Close()
					cell.Place = v
				}
				ofNodes := line != "heal" && line != "heal A" && line != "partition A from n1"
				ok, why := cell.Applies()
				if wants := !ofNodes || test.says == ""; ok != wants || ofNodes && why != test.says {
					t.Errorf("%v: %q, want %q", ok, why, test.says)
				}
			})
		}
	}
}
