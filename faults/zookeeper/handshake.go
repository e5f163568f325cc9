package zookeeper

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"
)

// The versions of a member's first message to another member's election port (QuorumCnxManager of
// ZooKeeper 3.5 and newer). Version 1 contains one address, version 2 one or more.
const (
	version1 = -65536
	version2 = -65535
)

// longestName is the maximum length of the addresses: as many bytes as ZooKeeper reads.
const longestName = 2048

// introduce passes on a member's first message to another member's election port. A member that is
// dialled by one with a smaller number closes the connection, and dials back to the address in the
// message: the dialler's own listener. introduce replaces that address with the way that leads
// there.
func introduce(r io.Reader, w io.Writer, own, way string) error {
	head := make([]byte, 8+8+4) // version, number, length of the addresses
	n, err := io.ReadFull(r, head[:8])
	version := int64(binary.BigEndian.Uint64(head))
	if err == nil && (version == version1 || version == version2) {
		var more int
		more, err = io.ReadFull(r, head[8:])
		n += more
	}
	length := binary.BigEndian.Uint32(head[16:])
	if n < len(head) || length > longestName { // an unknown version, or a truncated message
		return passOn(w, head[:n], err)
	}
	name := make([]byte, length)
	if n, err = io.ReadFull(r, name); err != nil {
		return passOn(w, append(head, name[:n]...), err)
	}
	named := strings.ReplaceAll(string(name), own, way)
	if named == string(name) {
		return fmt.Errorf("it says that it is at %q, and not at %s", name, own)
	}
	binary.BigEndian.PutUint32(head[16:], uint32(len(named)))
	return passOn(w, append(head, named...), nil)
}

// passOn writes the bytes that were read. At the end of the stream it returns nil, because the
// goroutine that copies the rest sees the end, too.
func passOn(w io.Writer, read []byte, err error) error {
	if _, failed := w.Write(read); failed != nil {
		return failed
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return nil
	}
	return err
}
