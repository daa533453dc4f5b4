package prm

import (
	"errors"
	"io/fs"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"caper/configs"
	"caper/train/settings"
)

func TestConfigOverridesFileOverridesDefaults(t *testing.T) {
	text := "[train]\nlr = 0.5\nepochs = 7\ntuples = ['a b.jsonl']\n[loss]\nmargin = 'both'\n"
	c, err := ParseConfig([]byte(text), "x.toml", []string{
		"train.lr=1e-3", "loss.severity=true", "train.out=runs/1", "model.path=my model", "train.seed=42",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := Defaults()
	want.Train.LR, want.Train.Epochs, want.Train.Tuples, want.Train.Out, want.Train.Seed = 1e-3, 7, []string{"a b.jsonl"}, "runs/1", 42
	want.Loss.Margin, want.Loss.Severity, want.Model.Path = "both", true, "my model"
	if c.Text() != want.Text() {
		t.Errorf("%+v", c)
	}
	for word, files := range map[string][]string{
		"train.tuples=a.jsonl":               {"a.jsonl"},
		"train.tuples=a.jsonl,dir/b c.jsonl": {"a.jsonl", "dir/b c.jsonl"},
		`train.tuples=["x,y.jsonl"]`:         {"x,y.jsonl"},
	} {
		if c, err := ParseConfig(nil, "", []string{word}); err != nil || !reflect.DeepEqual(c.Train.Tuples, files) {
			t.Errorf("%s: %q, error %v", word, c.Train.Tuples, err)
		}
	}
}

// What Text writes, ParseConfig reads.
func TestConfigTextRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Defaults()
		c.Train.Tuples = rapid.SliceOfN(rapid.String(), 0, 3).Draw(t, "tuples")
		c.Train.Out = rapid.String().Draw(t, "out")
		c.Train.LR = rapid.Float64Range(1e-300, 1e300).Draw(t, "lr")
		c.Train.Seed = rapid.Uint64Max(1<<63-1).Draw(t, "seed")
		c.Loss.Severity = rapid.Bool().Draw(t, "severity")
		again, err := ParseConfig([]byte(c.Text()), "", nil)
		if err != nil || again.Text() != c.Text() {
			t.Fatalf("error %v, got %+v, want %+v", err, again, c)
		}
	})
}

// Errors name the file, the line, the key, and what to write.
func TestConfigErrors(t *testing.T) {
	for _, k := range []struct {
		text      string
		overrides []string
		want      []string
	}{
		{"[train]\nlr = 1\nbatch_pair = 3\n", nil, []string{"x.toml:3", "train.batch_pair", "train.batch_pairs"}},
		{"[trian]\nlr = 1\n", nil, []string{"x.toml:", "trian", "train."}},
		{"lr = 1\n", nil, []string{"x.toml:1", "\"lr\"", "train.lr"}},
		{"[train]\nlr = 'fast'\n", nil, []string{"x.toml:2: train.lr: want a number"}},
		{"[train]\ntuples = 'a'\n", nil, []string{"x.toml:2: train.tuples: want a list of texts"}},
		{"[train]\nseed = -1\n", nil, []string{"x.toml:2: train.seed: want a whole number, 0 or more"}},
		{"[loss]\n\nseverity = 1\n", nil, []string{"x.toml:3: loss.severity: want true or false"}},
		{"train.warmup = 2\n", nil, []string{"x.toml:1: train.warmup = 2: must lie in [0, 1]"}},
		{"[train]\nlr = 1\nbatch_pairs = 0\n", nil, []string{"x.toml:3: train.batch_pairs = 0: must be above 0"}},
		{"[model]\nhidden_size = 0\n", nil, []string{"x.toml:2: model.hidden_size = 0: must be a size"}},
		{"[model]\nnum_attention_heads = 3\nnum_key_value_heads = 2\n", nil, []string{"x.toml:2: model.num_attention_heads = 3: 3 is not a multiple"}},
		{"[model]\nhead_dim = 3\n", nil, []string{"x.toml:2: model.head_dim = 3: must be a multiple of 8"}},
		{"[model]\nvocab_size = 3\n", nil, []string{"x.toml:2: model.vocab_size = 3"}},
		{"[train]\nepochs = 1\n", []string{"train.epochs=0"}, []string{"override \"train.epochs=0\": train.epochs = 0: must be above 0"}},
		{"", []string{"train.threads=-1"}, []string{"override \"train.threads=-1\"", "train.threads = -1"}},
		{"", []string{"loss.severity=1"}, []string{"override \"loss.severity=1\": loss.severity: want true or false"}},
		{"[train]\nlr = \n", nil, []string{"x.toml:2"}},
		{"", []string{"train.epoch=3"}, []string{"train.epoch=3", "train.epochs"}},
		{"", []string{"epochs"}, []string{"epochs", "section.key=value"}},
		{"", []string{"train.epochs=many"}, []string{"train.epochs=many"}},
		{"", []string{"train.epochs=0"}, []string{"train.epochs", "above 0"}},
		{"", []string{"train.lr=nan"}, []string{"train.lr", "above 0"}},
		{"", []string{"train.holdout_databases=1.5"}, []string{"train.holdout_databases", "[0, 1]"}},
		{"", []string{"loss.margin=heavy"}, []string{"loss.margin", "heavy", "weight, offset, both or none"}},
	} {
		_, err := ParseConfig([]byte(k.text), "x.toml", k.overrides)
		var mistake *settings.Error
		if !errors.As(err, &mistake) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "struct") {
			t.Errorf("%q %q: error %v", k.text, k.overrides, err)
			continue
		}
		for _, want := range k.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q %q: error %q does not name %q", k.text, k.overrides, err, want)
			}
		}
	}
	if _, err := LoadConfig(filepath.Join(t.TempDir(), "gone.toml"), nil); err == nil || !strings.Contains(err.Error(), "gone.toml") {
		t.Errorf("missing file: error %v", err)
	}
}

// Arbitrary text is a configuration or an error of one line.
func FuzzParseConfig(f *testing.F) {
	f.Add("[train]\nlr = 1e-3\n", "train.out=x")
	f.Add("[loss]\nmargin = \"none\"\n", "loss.severity=true")
	f.Add("\x00[", "=")
	f.Fuzz(func(t *testing.T, text, override string) {
		_, err := ParseConfig([]byte(text), "x.toml", []string{override})
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("error of several lines: %v", err)
		}
	})
}

// Every shipped configuration is valid.
func TestShippedConfigs(t *testing.T) {
	names, err := fs.Glob(configs.Files, "prm-*.toml")
	if err != nil || len(names) == 0 {
		t.Fatalf("%d files, error %v", len(names), err)
	}
	for _, name := range names {
		text, err := configs.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseConfig(text, name, nil); err != nil {
			t.Error(err)
		}
	}
}
