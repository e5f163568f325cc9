package sim

import (
	"slices"
	"strings"
)

// client executes CLIENT subcommands about tracking, and reports whether words is one. REDIRECT is
// not supported: connections have no order, and so no number.
func (s *redis) client(c *conn, words []string) bool {
	if !aboutTracking(words) {
		return false
	}
	answer := queueTracking(words)
	if answer[0] != '-' {
		answer = []byte(s.clientTracking(c, strings.ToUpper(words[1]), words[2:]))
	}
	c.peer.WriteRaw(string(answer))
	return true
}

// aboutTracking reports whether a command is a CLIENT subcommand about tracking.
func aboutTracking(words []string) bool {
	return len(words) > 1 && strings.EqualFold(words[0], "CLIENT") &&
		slices.Contains([]string{"TRACKING", "CACHING", "TRACKINGINFO", "GETREDIR"}, strings.ToUpper(words[1]))
}

// wrongLength reports whether a subcommand about tracking has too few or too many arguments.
func wrongLength(sub string, args []string) bool {
	switch sub {
	case "TRACKING":
		return len(args) == 0
	case "CACHING":
		return len(args) != 1
	}
	return len(args) != 0
}

const (
	ok          = "+OK\r\n"
	syntaxError = "-ERR syntax error\r\n"
)

// queueTracking returns the reply to queueing a subcommand about tracking in a transaction: OK or
// an error.
func queueTracking(words []string) []byte {
	sub := strings.ToUpper(words[1])
	if wrongLength(sub, words[2:]) {
		return failure("ERR wrong number of arguments for 'client|%s' command", strings.ToLower(sub))
	}
	return []byte(ok)
}

func (s *redis) clientTracking(c *conn, sub string, args []string) string {
	switch sub {
	case "CACHING":
		return c.tracker.cache(strings.ToUpper(args[0]))
	case "GETREDIR":
		if c.tracker.on {
			return ":0\r\n"
		}
		return ":-1\r\n"
	case "TRACKINGINFO":
		return c.tracker.info(c.peer.Resp3)
	}
	as, refusal := parseTracker(args[1:])
	if refusal != "" {
		return refusal
	}
	switch strings.ToUpper(args[0]) {
	case "ON":
		if refusal := as.refusal(c.tracker); refusal != "" {
			return refusal
		}
		if s.elsewhere {
			return "-ERR CLIENT TRACKING is not possible in this world once a client has selected another database than 0\r\n"
		}
		s.track(c, as)
	case "OFF":
		s.untrack(c)
	default:
		return syntaxError
	}
	return ok
}

// parseTracker parses the options of CLIENT TRACKING. refusal is Redis's error reply, or empty.
func parseTracker(args []string) (as clientTracking, refusal string) {
	for i := 0; i < len(args); i++ {
		more := i+1 < len(args)
		switch option := strings.ToUpper(args[i]); {
		case option == "REDIRECT" && more:
			return as, "-ERR CLIENT TRACKING with REDIRECT is not possible in this world\r\n"
		case option == "BCAST":
			as.bcast = true
		case option == "OPTIN":
			as.optin = true
		case option == "OPTOUT":
			as.optout = true
		case option == "NOLOOP":
			as.noloop = true
		case option == "PREFIX" && more:
			i++
			as.prefixes = append(as.prefixes, args[i])
		default:
			return as, syntaxError
		}
	}
	return as, ""
}

// refusal returns Redis's error reply if the options contradict each other or the present mode, or
// empty.
func (t clientTracking) refusal(now clientTracking) string {
	const before = " before disabling tracking for this client, and then re-enabling it with a different mode."
	switch {
	case !t.bcast && len(t.prefixes) > 0:
		return "-ERR PREFIX option requires BCAST mode to be enabled\r\n"
	case now.on && t.bcast != now.bcast:
		return "-ERR You can't switch BCAST mode on/off" + before + "\r\n"
	case t.bcast && (t.optin || t.optout):
		return "-ERR OPTIN and OPTOUT are not compatible with BCAST\r\n"
	case t.optin && t.optout:
		return "-ERR You can't specify both OPTIN mode and OPTOUT mode\r\n"
	case t.optin && now.optout || t.optout && now.optin:
		return "-ERR You can't switch OPTIN/OPTOUT mode" + before + "\r\n"
	}
	for i, one := range t.prefixes {
		for _, other := range now.prefixes {
			if overlap(one, other) {
				return string(failure("ERR Prefix '%s' overlaps with an existing prefix '%s'. Prefixes for a single client must not overlap.", one, other))
			}
		}
		for _, other := range t.prefixes[i+1:] {
			if overlap(one, other) {
				return string(failure("ERR Prefix '%s' overlaps with another provided prefix '%s'. Prefixes for a single client must not overlap.", one, other))
			}
		}
	}
	return ""
}

func overlap(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) }

// cache executes CLIENT CACHING and returns the reply.
func (t *clientTracking) cache(what string) string {
	switch {
	case !t.on:
		return "-ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled\r\n"
	case what == "YES" && !t.optin:
		return "-ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.\r\n"
	case what == "NO" && !t.optout:
		return "-ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.\r\n"
	case what != "YES" && what != "NO":
		return syntaxError
	}
	t.caching = true
	return ok
}

// info returns the reply to CLIENT TRACKINGINFO.
func (t *clientTracking) info(resp3 bool) string {
	flags, redirect := []string{"off"}, ":-1\r\n"
	if t.on {
		flags, redirect = []string{"on"}, ":0\r\n"
	}
	for _, flag := range [...]struct {
		set  bool
		name string
	}{
		{t.bcast, "bcast"}, {t.optin, "optin"}, {t.optin && t.caching, "caching-yes"},
		{t.optout, "optout"}, {t.optout && t.caching, "caching-no"}, {t.noloop, "noloop"},
	} {
		if flag.set {
			flags = append(flags, flag.name)
		}
	}
	list, head := string(array(flags...)), "*6\r\n"
	prefixes := string(array(t.prefixes...))
	if resp3 {
		list, head = "~"+list[1:], "%3\r\n"
	}
	return head + "$5\r\nflags\r\n" + list + "$8\r\nredirect\r\n" + redirect + "$8\r\nprefixes\r\n" + prefixes
}
