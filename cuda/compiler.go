package cuda

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"caper/cuda/dialect"
)

// Source is a kernel text in the language of package dialect. Name is what messages call
// it, such as "kernels/rmsnorm/op.cu".
type Source struct{ Name, Text string }

// Cubin is a compiled kernel text.
type Cubin struct {
	Name, Arch string
	Image      []byte
	Kernels    []Resources
	Log        string // the compiler's
	Origin     string // "compiled by NVRTC 13.0", or the file it comes from
}

// Compiler turns kernel texts into cubins. A cubin is taken, in this order,
// from the folder of cubins that travels with the program (WriteCubin), from the cache on
// disk, or from NVRTC. Several goroutines, and processes, may share one cache.
type Compiler struct {
	Cubins  string // folder of compiled kernels, looked at first; none where empty
	Cache   string // folder of the cache; none where empty
	headers []dialect.Header
}

// NewCompiler returns a compiler with the folders that the environment names: Cubins is
// CAPER_CUBINS, else cubins beside the program where there is such a folder; Cache is
// CAPER_CACHE, else caper/cubins in the user's cache folder.
func NewCompiler() *Compiler {
	c := &Compiler{Cubins: os.Getenv("CAPER_CUBINS"), Cache: os.Getenv("CAPER_CACHE"), headers: dialect.Device()}
	if program, err := os.Executable(); err == nil && c.Cubins == "" {
		beside := filepath.Join(filepath.Dir(program), "cubins")
		if info, err := os.Stat(beside); err == nil && info.IsDir() {
			c.Cubins = beside
		}
	}
	if user, err := os.UserCacheDir(); err == nil && c.Cache == "" {
		c.Cache = filepath.Join(user, "caper", "cubins")
	}
	return c
}

// compilerOptions are those of every kernel. ptxas takes one option a flag, and reports
// what kernels use with -v; a spill is an error.
func compilerOptions(arch string) []string {
	return []string{
		"--gpu-architecture=" + arch, "-default-device", "--std=c++17",
		"--ptxas-options=-v", "--ptxas-options=-warn-spills", "--ptxas-options=-Werror",
	}
}

// Compile returns the cubin of a text for an architecture (Info.Arch). A kernel that
// spills registers, or whose wgmma had to be serialised, is refused.
func (c *Compiler) Compile(s Source, arch string) (*Cubin, error) {
	shipped := cubinFile{folder: c.Cubins, key: c.key(s, arch, "any"), name: s.Name, arch: arch}
	if c.Cubins != "" {
		if cubin, err := shipped.read(); err == nil {
			return cubin, nil
		} else if !errors.Is(err, os.ErrNotExist) {
			slog.Warn("a compiled kernel is not usable", "file", shipped.path(), "error", err)
		}
	}
	n, err := loadNVRTC()
	if err != nil {
		if c.Cubins != "" {
			return nil, fmt.Errorf("%s holds no kernels of %s for %s: %w", c.Cubins, s.Name, arch, err)
		}
		return nil, fmt.Errorf("kernels of %s for %s: %w", s.Name, arch, err)
	}
	cached := cubinFile{folder: c.Cache, key: c.key(s, arch, n.version.String()), name: s.Name, arch: arch}
	if c.Cache != "" {
		if cubin, err := cached.read(); err == nil {
			return cubin, nil
		} // else it is not there, or damaged: in both cases written again below
	}
	cubin, err := c.compile(n, s, arch)
	if err != nil {
		return nil, err
	}
	if c.Cache != "" {
		if err := cached.write(cubin); err != nil {
			slog.Warn("compiled kernels are not kept: name a folder that can be written in CAPER_CACHE", "error", err)
		}
	}
	return cubin, nil
}

// WriteCubin compiles a text and writes it to a folder that can serve as Cubins, where it
// is found without NVRTC.
func (c *Compiler) WriteCubin(folder string, s Source, arch string) (*Cubin, error) {
	cubin, err := c.Compile(s, arch)
	if err != nil {
		return nil, err
	}
	return cubin, cubinFile{folder: folder, key: c.key(s, arch, "any"), name: s.Name, arch: arch}.write(cubin)
}

func (c *Compiler) compile(n *nvrtc, s Source, arch string) (*Cubin, error) {
	image, log, err := n.compile(s.Name, s.Text, c.headers, compilerOptions(arch))
	if err != nil {
		return nil, fmt.Errorf("%s for %s: %w", s.Name, arch, explain(err, log))
	}
	cubin := &Cubin{
		Name: s.Name, Arch: arch, Image: image, Log: log, Kernels: parseResources(log),
		Origin: "compiled by NVRTC " + n.version.String(),
	}
	if err := cubin.check(); err != nil {
		return nil, err
	}
	return cubin, nil
}

// explain puts the compiler's first complaint before what NVRTC calls it.
func explain(err error, log string) error {
	for line := range strings.Lines(log) {
		if strings.Contains(line, "error") || strings.Contains(line, "spill") && !strings.Contains(line, " 0 bytes spill stores") {
			return fmt.Errorf("%s: %w", strings.TrimSpace(line), err)
		}
	}
	return err
}

// check refuses kernels that work but run slowly for a reason that only the log tells.
func (c *Cubin) check() error {
	if len(c.Image) == 0 {
		return fmt.Errorf("%s for %s: NVRTC made no cubin; architectures are named sm_NN, not compute_NN", c.Name, c.Arch)
	}
	for _, k := range c.Kernels {
		if k.SpillStores+k.SpillLoads > 0 {
			return fmt.Errorf("%s for %s: kernel %s spills %v of registers: lower what it keeps or its __launch_bounds__",
				c.Name, c.Arch, k.Kernel, k.SpillStores)
		}
	}
	if remark := serialised.FindString(c.Log); remark != "" {
		return fmt.Errorf("%s for %s: wgmma is serialised: %s", c.Name, c.Arch, strings.TrimSpace(remark))
	}
	return nil
}

// key is a hash of all that a cubin depends on: compiler, options and with them the
// architecture, text, and headers.
func (c *Compiler) key(s Source, arch, version string) string {
	options := slices.Sorted(slices.Values(compilerOptions(arch)))
	headers := slices.SortedFunc(slices.Values(c.headers), func(a, b dialect.Header) int { return cmp.Compare(a.Name, b.Name) })
	h := sha256.New()
	field := func(text string) { fmt.Fprintf(h, "%d:", len(text)); io.WriteString(h, text) }
	field("NVRTC " + version)
	field(strings.Join(options, " "))
	field(s.Name)
	field(s.Text)
	for _, header := range headers {
		field(header.Name)
		field(header.Text)
	}
	return hex.EncodeToString(h.Sum(nil))
}
