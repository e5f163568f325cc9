package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/testcontainers/testcontainers-go"
)

// LocalImage is the name of the image that [BuildImage] builds.
const LocalImage = "lockfault/redis:local"

// user is the user and group ID of servers in the local image; the images of Redis use the same
// number.
const user = 999

const dockerfile = `FROM scratch
ADD root.tar /
USER 999:999
WORKDIR /data
EXPOSE 6379
ENTRYPOINT ["/usr/local/bin/redis-server"]
`

// BuildImage builds LocalImage from a server program of this machine and its libraries, without a
// registry. The program is a name on PATH or a file; empty means redis-server. BuildImage blocks
// until the image is built or ctx is done. The error is an *[EngineError] if no engine answers.
func BuildImage(ctx context.Context, program string) error {
	if _, err := connect(ctx); err != nil {
		return err
	}
	if program == "" {
		program = "redis-server"
	}
	binary, err := exec.LookPath(program)
	if err != nil {
		return fmt.Errorf("docker: build an image: %w: install a Redis server", err)
	}
	root, err := pack(ctx, binary)
	if err != nil {
		return fmt.Errorf("docker: build an image of %s: %w", binary, err)
	}
	var build tarball
	build.file("Dockerfile", []byte(dockerfile), 0o644, 0)
	build.file("root.tar", root, 0o644, 0)
	archive, err := build.end()
	if err != nil {
		return fmt.Errorf("docker: build an image: %w", err)
	}
	provider, err := newProvider()
	if err != nil {
		return fmt.Errorf("docker: build an image: %w", oneLine(err))
	}
	repo, tag, _ := strings.Cut(LocalImage, ":")
	_, err = provider.BuildImage(ctx, &testcontainers.ContainerRequest{FromDockerfile: testcontainers.FromDockerfile{
		ContextArchive: bytes.NewReader(archive), Repo: repo, Tag: tag, KeepImage: true,
	}})
	if err != nil {
		return fmt.Errorf("docker: build an image: %w", oneLine(err))
	}
	return nil
}

// pack returns a tar archive of the image's root directory.
func pack(ctx context.Context, binary string) ([]byte, error) {
	libraries, err := libraries(ctx, binary)
	if err != nil {
		return nil, err
	}
	var root tarball
	root.directory("data", user)
	root.file("etc/passwd", fmt.Appendf(nil, "redis:x:%d:%d::/data:/nonexistent\n", user, user), 0o644, 0)
	root.copy("usr/local/bin/redis-server", binary)
	for _, library := range libraries {
		root.copy(strings.TrimPrefix(filepath.ToSlash(library), "/"), library)
	}
	return root.end()
}

// library matches a file in ldd's output: after an arrow, or alone for the loader.
var library = regexp.MustCompile(`(?m)^\s+(?:\S+ => )?(/\S+) \(0x[0-9a-f]+\)$`)

// libraries returns the files that the program loads, under the names by which the program finds
// them. The list is empty for a statically linked program.
func libraries(ctx context.Context, binary string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "ldd", binary)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	text, err := cmd.CombinedOutput()
	if strings.Contains(string(text), "not a dynamic executable") {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ask ldd for its libraries: %w", err)
	}
	if strings.Contains(string(text), "not found") {
		return nil, fmt.Errorf("it lacks libraries: %s", strings.Join(strings.Fields(string(text)), " "))
	}
	var list []string
	for _, match := range library.FindAllStringSubmatch(string(text), -1) {
		list = append(list, match[1])
	}
	return list, nil
}

// A tarball builds a tar archive. The zero value is empty. Files have a fixed time, so that the
// same content gives the same archive.
type tarball struct {
	buf  bytes.Buffer
	tar  *tar.Writer
	made []string // directories
	err  error
}

func (t *tarball) write(h tar.Header, content []byte) {
	if t.err != nil {
		return
	}
	if t.tar == nil {
		t.tar = tar.NewWriter(&t.buf)
	}
	h.ModTime, h.Format = time.Unix(0, 0), tar.FormatPAX
	if t.err = t.tar.WriteHeader(&h); t.err == nil {
		_, t.err = t.tar.Write(content)
	}
}

// directory adds a directory and its missing parents.
func (t *tarball) directory(name string, owner int) {
	if name == "." || slices.Contains(t.made, name) {
		return
	}
	t.directory(path.Dir(name), 0)
	t.made = append(t.made, name)
	t.write(tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, Uid: owner, Gid: owner}, nil)
}

func (t *tarball) file(name string, content []byte, mode fs.FileMode, owner int) {
	t.directory(path.Dir(name), 0)
	t.write(tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: int64(mode), Uid: owner, Gid: owner}, content)
}

// copy adds a file of this machine.
func (t *tarball) copy(name, from string) {
	content, err := os.ReadFile(from)
	if err != nil && t.err == nil {
		t.err = err
	}
	t.file(name, content, 0o755, 0)
}

// end returns the archive, or the first error.
func (t *tarball) end() ([]byte, error) {
	if t.err != nil {
		return nil, t.err
	}
	err := t.tar.Close()
	return t.buf.Bytes(), err
}
