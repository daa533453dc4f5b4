package emulator

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"

	"caper/cuda/dialect"
)

// Source is a kernel text. Faults name its lines by Name, such as
// "kernels/rmsnorm/op.cu".
type Source struct{ Name, Text string }

// Options are those of Build.
type Options struct {
	// Races checks each access to shared and global memory against those of all other
	// threads: races, reads of shared memory that nobody wrote, missing waits and fences.
	// Kernels run 5 to 10 times slower, and take 100 bytes for each byte that they touch:
	// use small shapes.
	Races bool
}

// ErrNoCompiler is wrapped by Build's error where kernels cannot be compiled.
var ErrNoCompiler = errors.New("the CUDA emulator needs g++ and addr2line on x86-64 Linux (Debian: apt install g++ binutils)")

// Build compiles kernel texts and opens the library, which stays open. What was built
// before from the same texts, by the same compiler, is taken from caper/emulator in the
// user's cache folder. Texts are compiled as they stand; kernels are found by their form,
//
//	extern "C" __global__ void __launch_bounds__(threads) name(
//
// A text that does not compile is an error that holds the compiler's first messages.
func Build(ctx context.Context, o Options, sources ...Source) (*Library, error) {
	compiler, err := findCompiler(ctx)
	if err != nil {
		return nil, err
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("folder for built kernels: %w", err)
	}
	units, err := unitsOf(o.Races, sources)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(user, "caper", "emulator", digest(compiler, headers(), units)+".so")
	if _, err := os.Stat(file); err != nil {
		if err := build(ctx, file, compiler, units); err != nil {
			return nil, err
		}
	}
	return open(file)
}

// findCompiler returns the compiler's version.
func findCompiler(ctx context.Context) (string, error) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return "", fmt.Errorf("%w, and this is %s/%s", ErrNoCompiler, runtime.GOOS, runtime.GOARCH)
	}
	if _, err := exec.LookPath("addr2line"); err != nil {
		return "", fmt.Errorf("%w: %v", ErrNoCompiler, err)
	}
	version, err := exec.CommandContext(ctx, "g++", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%w: %v", ErrNoCompiler, err)
	}
	return string(version), nil
}

// unit is one file for the compiler.
type unit struct {
	name, text string
	flags      []string
}

//go:embed emulator.h memory.h memory.c runtime
var files embed.FS

var (
	allFlags = []string{"-O2", "-g1", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off"}
	cppFlags = append([]string{"-std=c++17", "-fno-exceptions", "-fno-rtti", "-fno-math-errno"}, allFlags...)
	// Kernels cast pointers as CUDA allows. A call must keep its own return address, and
	// two calls must not become one, for lines to be found and told apart. The checks of
	// alignment, of indices of arrays whose size is known and of shifts cost next to nothing.
	kernelFlags = append([]string{"-DCAPER_EMULATOR", "-fno-strict-aliasing", "-fno-optimize-sibling-calls", "-fno-crossjumping",
		"-fno-tree-tail-merge", "-fno-code-hoisting", "-fno-thread-jumps", "-fsanitize=alignment,bounds,shift", "-fsanitize-recover=all"}, cppFlags...)
	raceFlags = []string{"-fsanitize=thread", "--param=tsan-instrument-func-entry-exit=0", "-fno-threadsafe-statics"}
)

// headers are written beside the units. Their text is part of the digest.
func headers() map[string]string {
	h := map[string]string{dialect.Language.Name: dialect.Language.Text}
	fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if ext := path.Ext(name); err == nil && (ext == ".h" || ext == ".cuh") {
			text, _ := files.ReadFile(name)
			h[path.Base(name)] = string(text)
		}
		return err
	})
	return h
}

func unitsOf(races bool, sources []Source) ([]unit, error) {
	flags, runtimeFlags := kernelFlags, append(cppFlags[:len(cppFlags):len(cppFlags)], "-DEMU_RACES=0")
	if races {
		flags, runtimeFlags = append(flags[:len(flags):len(flags)], raceFlags...), append(cppFlags[:len(cppFlags):len(cppFlags)], "-DEMU_RACES=1")
	}
	var units []unit
	names := map[string]string{}
	for _, s := range sources {
		if !filepath.IsLocal(s.Name) || path.Ext(s.Name) != ".cu" {
			return nil, fmt.Errorf("kernel source %q: its name is no relative path that ends in .cu", s.Name)
		}
		kernels, err := kernelsOf(s)
		if err != nil {
			return nil, err
		}
		text := s.Text + "\n#line 1 \"registration\"\n"
		for _, k := range kernels {
			if other, twice := names[k.name]; twice {
				return nil, fmt.Errorf("%s: kernel %s is also in %s: rename one", s.Name, k.name, other)
			}
			names[k.name] = s.Name
			text += fmt.Sprintf("static emu::Registration register_%s(%q, %s, %s);\n", k.name, k.name, k.name, k.threads)
		}
		units = append(units, unit{s.Name, text, flags})
	}
	sourceFiles, _ := fs.Glob(files, "runtime/*.cpp")
	for _, name := range sourceFiles {
		text, _ := files.ReadFile(name)
		units = append(units, unit{path.Base(name), string(text), runtimeFlags})
	}
	text, _ := files.ReadFile("memory.c")
	return append(units, unit{"memory.c", string(text), allFlags}), nil
}

func digest(parts ...any) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q", parts) // a map prints in the order of its keys
	return hex.EncodeToString(h.Sum(nil))[:32]
}

// build compiles the units, a few at a time, and links them to the library file.
// Objects of unchanged units, the runtime's above all, come from the cache.
func build(ctx context.Context, file, compiler string, units []unit) error {
	cache := filepath.Dir(file)
	if err := os.MkdirAll(cache, 0o777); err != nil {
		return fmt.Errorf("folder for built kernels: %w", err)
	}
	dir, err := os.MkdirTemp(cache, "build-")
	if err != nil {
		return fmt.Errorf("folder for built kernels: %w", err)
	}
	defer os.RemoveAll(dir)
	for name, text := range headers() {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			return fmt.Errorf("compiling kernels: %w", err)
		}
	}
	errs := make([]error, len(units))
	objects := make([]string, len(units))
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wait sync.WaitGroup
	for i, u := range units {
		objects[i] = filepath.Join(cache, digest(compiler, headers(), u.name, u.text, u.flags)+".o")
		if _, err := os.Stat(objects[i]); err == nil {
			continue
		}
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			errs[i] = compile(ctx, dir, u, objects[i])
		})
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := runCompiler(ctx, dir, "g++", append([]string{"-shared", "-Wl,-z,defs", "-o", "library.so"}, objects...)...); err != nil {
		return err
	}
	return os.Rename(filepath.Join(dir, "library.so"), file)
}

func compile(ctx context.Context, dir string, u unit, object string) error {
	source := filepath.Join(dir, u.name)
	if err := os.MkdirAll(filepath.Dir(source), 0o777); err != nil {
		return fmt.Errorf("compiling kernels: %w", err)
	}
	if err := os.WriteFile(source, []byte(u.text), 0o666); err != nil {
		return fmt.Errorf("compiling kernels: %w", err)
	}
	compiler, language := "g++", "c++"
	if path.Ext(u.name) == ".c" {
		compiler, language = "gcc", "c"
	}
	args := append(u.flags[:len(u.flags):len(u.flags)], "-I.", "-fdebug-prefix-map="+dir+"=/kernel-sources", "-x", language, "-c", u.name, "-o", u.name+".o")
	if err := runCompiler(ctx, dir, compiler, args...); err != nil {
		return err
	}
	return os.Rename(source+".o", object)
}

// runCompiler runs it in dir. Its error holds the first messages.
func runCompiler(ctx context.Context, dir, compiler string, args ...string) error {
	cmd := exec.CommandContext(ctx, compiler, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	lines := strings.Split(string(bytes.TrimSpace(out)), "\n")
	var messages []string
	for _, l := range lines {
		if strings.Contains(l, "error") && len(messages) < 5 {
			messages = append(messages, strings.TrimPrefix(l, dir+"/"))
		}
	}
	if messages == nil {
		messages = lines[:min(len(lines), 5)]
	}
	return fmt.Errorf("%s: %w: %s", compiler, err, strings.Join(messages, "; "))
}

// ---- Finding kernels

type kernelForm struct{ name, threads string }

var (
	comments    = regexp.MustCompile(`(?s)//[^\n]*|/\*.*?\*/`)
	anyKernel   = regexp.MustCompile(`\b__global__\b`)
	kernelStart = regexp.MustCompile(`extern\s+"C"\s+__global__\s+void\s+(?:__launch_bounds__\(((?:[^()]|\([^()]*\))*)\)\s*)?([A-Za-z_]\w*)\s*\(`)
)

// kernelsOf finds the kernels of a text by their form.
func kernelsOf(s Source) ([]kernelForm, error) {
	text := comments.ReplaceAllStringFunc(s.Text, func(c string) string { return strings.Repeat("\n", strings.Count(c, "\n")) })
	found := kernelStart.FindAllStringSubmatch(text, -1)
	if n := len(anyKernel.FindAllString(text, -1)); n != len(found) {
		return nil, fmt.Errorf(`%s: %d of %d kernels are not written 'extern "C" __global__ void __launch_bounds__(threads) name('`, s.Name, n-len(found), n)
	}
	var kernels []kernelForm
	for _, m := range found {
		threads, _, _ := strings.Cut(m[1], ",")
		if threads == "" {
			threads = "1024"
		}
		kernels = append(kernels, kernelForm{m[2], threads})
	}
	return kernels, nil
}
