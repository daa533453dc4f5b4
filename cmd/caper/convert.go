package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"caper/data"
	"caper/model"
	"caper/model/safetensors"
)

// formatFlags choose how weights are written.
type formatFlags struct {
	DType        string `name:"dtype" help:"Element type of the weights: f32, bf16, f16, or keep." default:"keep" enum:"f32,bf16,f16,keep"`
	MaxShardSize string `help:"Largest file of weights, such as 5GB or 500MB." default:"5GB" placeholder:"SIZE"`
}

func (f formatFlags) format() (model.Format, error) {
	types := map[string]safetensors.DType{"f32": safetensors.F32, "bf16": safetensors.BF16, "f16": safetensors.F16}
	size, err := shardBytes(f.MaxShardSize)
	return model.Format{DType: types[f.DType], MaxShardBytes: size}, err
}

// shardBytes reads a size as Hugging Face writes it: decimal units.
func shardBytes(text string) (int, error) {
	number, factor := strings.ToUpper(text), 1
	for _, unit := range []struct {
		name   string
		factor int
	}{{"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"B", 1}} {
		if rest, ok := strings.CutSuffix(number, unit.name); ok {
			number, factor = rest, unit.factor
			break
		}
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > 1<<20 {
		return 0, fmt.Errorf("--max-shard-size %s: want a whole number up to 1048576 with MB or GB behind it", text)
	}
	return n * factor, nil
}

type convertCommand struct {
	Model string `arg:"" help:"Model folder, or any folder of safetensors weights." type:"existingdir"`
	Out   string `arg:"" help:"New folder." type:"path"`
	formatFlags
}

func (c *convertCommand) Help() string {
	return `Example:
  caper convert Qwen3.5-9B Qwen3.5-9B-f32 --dtype f32 --max-shard-size 10GB

Names, shapes and all other files stay as they are. Weights are streamed from file to file. Of bf16 and f16 those stay f32
that official checkpoints keep in it.`
}

// Validate checks the flags.
func (c *convertCommand) Validate() error {
	_, err := c.format()
	return err
}

func (c *convertCommand) Run() error {
	return c.fill(c.Model, c.Out, model.Convert, work{"converting", "converted", true})
}

// fill makes the folder out whole or not at all, and shows how far it is.
func (f formatFlags) fill(in, out string, write func(in, out string, f model.Format) error, w work) error {
	format, err := f.format()
	if err != nil {
		return err
	}
	if _, err := os.Lstat(out); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: is there already: name a new folder", out)
	}
	temporary, err := temporaryFolder(out)
	if err != nil {
		return err
	}
	defer data.Temporary(temporary)()
	defer os.RemoveAll(temporary)
	progress, end := func(int) {}, func() {}
	format.Progress = func(done, total int) {
		if done == 0 {
			progress, end = newProgress(os.Stderr, w, total)
		}
		progress(done)
	}
	err = write(in, temporary, format)
	end()
	if err != nil {
		return err
	}
	if err := os.Rename(temporary, out); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "model: %s\n", out)
	return nil
}

// temporaryFolder makes a folder beside out, named after this process. Those of processes
// that were killed are removed: they are as large as models.
func temporaryFolder(out string) (string, error) {
	prefix := filepath.Join(filepath.Dir(out), "."+filepath.Base(out)+".tmp-")
	siblings, err := os.ReadDir(filepath.Dir(out))
	if err != nil {
		return "", fmt.Errorf("%s: the folder that it is to lie in: %w", out, err)
	}
	for _, s := range siblings {
		pid, ours := strings.CutPrefix(s.Name(), filepath.Base(prefix))
		if _, err := strconv.Atoi(pid); !ours || err != nil {
			continue
		}
		if _, err := os.Stat("/proc/" + pid); errors.Is(err, fs.ErrNotExist) {
			os.RemoveAll(prefix + pid)
		}
	}
	temporary := prefix + strconv.Itoa(os.Getpid())
	return temporary, os.Mkdir(temporary, 0o755)
}
