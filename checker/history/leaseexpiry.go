package history

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/checker/linear"
)

// served follows the lock's key on a server, to report a lease that ends by the server's clock as
// an event. The zero value has seen no state.
type served struct {
	server string // the server of the states so far
	owner  string // last owner of the key; empty if it had none
	alien  bool   // the key had a value of an unknown owner
}

// state processes a State of the key, and returns one record if a lease has ended.
func (s *served) state(e *jsonLine, r *record) (int, error) {
	server := cmp.Or(e.Server, e.Node+"/0")
	if s.server != "" && server != s.server {
		return 0, badFile{fmt.Errorf("%s says something of the key, and before it %s: with several servers there are several clocks, so none says when a lease ends", server, s.server)}
	}
	s.server = server
	owner, alien := s.owner, s.alien
	s.owner, s.alien = e.Owner, e.Owner == "" && e.Value != ""
	gone := s.owner == "" && !s.alien // a moved clock may leave the key there
	switch {
	case !gone || e.Cause != checker.ByExpiry && e.Cause != checker.ByClock:
		return 0, nil
	case alien:
		return 0, badFile{errors.New("a lease ended, and whose is not known, so the server's clock can't judge: none of the clients was the key's owner by the states before")}
	case owner == "":
		return 0, nil
	}
	*r = record{Event: linear.Event{Time: e.Time, Client: owner, Phase: linear.Expired}}
	return 1, nil
}
