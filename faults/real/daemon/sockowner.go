package daemon

import (
	"errors"
	"net"
	"net/netip"
	"runtime"

	psnet "github.com/shirou/gopsutil/v4/net"
)

// CanFindSocketOwner reports whether this system can tell which process owns a connection. A
// [PeerProxy] needs that for ways without a fixed dialler.
func CanFindSocketOwner() bool { return runtime.GOOS == "linux" }

// errNobody reports that none of the given processes owns a socket.
var errNobody = errors.New("none of the members has it")

// dialler returns the member whose process has dialled a connection that was accepted from
// loopback. The error is errNobody if no process owns the socket any more.
func dialler(accepted *net.TCPConn, pids map[int]int) (member int, err error) {
	from, to := accepted.RemoteAddr().(*net.TCPAddr).AddrPort(), accepted.LocalAddr().(*net.TCPAddr).AddrPort()
	for range 2 { // a table is read in parts, so an existing socket may be missed while others are removed
		for member, pid := range pids {
			list, _ := psnet.ConnectionsPidWithoutUids("tcp", int32(pid)) // empty if the process has ended
			for _, c := range list {
				if same(from, c.Laddr) && same(to, c.Raddr) {
					return member, nil
				}
			}
		}
	}
	return 0, errNobody
}

// same reports whether two addresses are the same. Java programs make IPv6 sockets for IPv4
// addresses.
func same(a netip.AddrPort, b psnet.Addr) bool {
	ip, err := netip.ParseAddr(b.IP)
	return err == nil && ip.Unmap() == a.Addr().Unmap() && uint32(a.Port()) == b.Port
}
