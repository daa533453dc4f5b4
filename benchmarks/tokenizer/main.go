// Command tokenizer times caper's tokenizer and others on the same texts, in turn, and
// checks that all give the same ids. See run.sh.
package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"caper/model/tokenizer"
)

// jobs is what every library does: encode all texts as one, encode them one by one,
// decode the ids of the whole.
var jobs = []string{"whole", "texts", "decode"}

func main() {
	path := flag.String("tokenizer", "", "tokenizer.json of Qwen3")
	texts := flag.String("texts", "", "JSON Lines with \"text\"")
	python := flag.String("python", "python3", "interpreter with the packages of requirements.txt")
	rounds := flag.Int("rounds", 7, "times that everything runs")
	flag.Parse()
	if err := run(*path, *texts, *python, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "tokenizer:", err)
		os.Exit(1)
	}
}

// worker is a library that does jobs: it returns the seconds and a digest of the
// result. It does the job once for nothing, because the processor's caches hold the
// work of another library, and then again and again for a quarter of a second.
type worker interface {
	do(job string) (seconds float64, digest string, err error)
}

func run(path, texts, python string, rounds int) error {
	ours, err := newCaper(path, texts)
	if err != nil {
		return err
	}
	names := []string{"caper", "caper, 2 threads"}
	workers := map[string]worker{names[0]: ours, names[1]: ours.with(2)}
	for _, name := range []string{"tokenizers", "kitoken", "quicktok"} {
		p, err := startPeer(python, name, path, texts)
		if err != nil {
			return err
		}
		defer p.stop()
		names, workers[name] = append(names, name), p
	}
	fmt.Printf("%d texts, %.2f MB, %d tokens; %d rounds, medians\n", len(ours.texts), float64(len(ours.whole))/1e6, len(ours.ids), rounds)
	fmt.Printf("%-8s %-18s %10s %20s\n", "job", "library", "MB/s", "caper is faster by")
	for _, job := range jobs {
		seconds := map[string][]float64{}
		want := ""
		for range rounds {
			for _, name := range names {
				s, digest, err := workers[name].do(job)
				if err != nil {
					return fmt.Errorf("%s: %s: %w", name, job, err)
				}
				if want == "" {
					want = digest
				}
				if digest != want {
					return fmt.Errorf("%s: %s: another result than caper's", name, job)
				}
				seconds[name] = append(seconds[name], s)
			}
		}
		for _, name := range names {
			fmt.Printf("%-8s %-18s %10.1f %20.2f\n", job, name, float64(len(ours.whole))/1e6/median(seconds[name]), median(seconds[name])/median(seconds[names[0]]))
		}
	}
	return nil
}

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}

// caper is our own tokenizer.
type caper struct {
	tokenizer *tokenizer.Tokenizer
	texts     []string
	whole     string
	ids       []int32   // of whole
	encoded   [][]int32 // by thread
	threads   int
}

func newCaper(path, texts string) (*caper, error) {
	k, err := tokenizer.Load(path)
	if err != nil {
		return nil, err
	}
	c := (&caper{tokenizer: k}).with(1)
	f, err := os.Open(texts)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for d := json.NewDecoder(f); ; {
		var line struct{ Text string }
		if err := d.Decode(&line); err == io.EOF {
			break
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", texts, err)
		}
		c.texts = append(c.texts, line.Text)
	}
	c.whole = strings.Join(c.texts, "\n")
	c.ids = k.EncodeText(c.whole, nil)
	return c, nil
}

// with returns the same on so many threads.
func (c *caper) with(threads int) *caper {
	other := *c
	other.threads, other.encoded = threads, make([][]int32, threads)
	return &other
}

func (c *caper) do(job string) (float64, string, error) {
	decoded := make([]string, c.threads)
	c.pass(job, decoded)
	start, passes := time.Now(), 0
	for ; time.Since(start) < time.Second/4; passes++ {
		c.pass(job, decoded)
	}
	seconds := time.Since(start).Seconds() / float64(passes)
	var result bytes.Buffer
	for i := range c.threads {
		if job != "decode" {
			binary.Write(&result, binary.LittleEndian, c.encoded[i])
		}
		result.WriteString(decoded[i])
	}
	sum := sha256.Sum256(result.Bytes())
	return seconds, hex.EncodeToString(sum[:]), nil
}

// pass does the job once. The ids go where those of the last pass were.
func (c *caper) pass(job string, decoded []string) {
	var group sync.WaitGroup
	for i := range c.threads {
		group.Go(func() {
			switch job {
			case "whole": // cut between two texts, as one who encodes in parallel would
				c.encoded[i] = c.tokenizer.EncodeText(c.share(i), c.encoded[i][:0])
			case "texts":
				ids := c.encoded[i][:0]
				for _, text := range c.texts[i*len(c.texts)/c.threads : (i+1)*len(c.texts)/c.threads] {
					ids = c.tokenizer.EncodeText(text, ids)
				}
				c.encoded[i] = ids
			case "decode":
				decoded[i] = c.tokenizer.Decode(c.ids[i*len(c.ids)/c.threads:(i+1)*len(c.ids)/c.threads], false)
			}
		})
	}
	group.Wait()
}

// share returns the part of the whole that thread i encodes. It starts behind a line
// end and before a letter, where no piece goes across.
func (c *caper) share(i int) string {
	border := func(i int) int {
		at := i * len(c.whole) / c.threads
		for at > 0 && at < len(c.whole) && !(c.whole[at-1] == '\n' && c.whole[at] >= 'A' && c.whole[at] <= 'Z') {
			at++
		}
		return at
	}
	return c.whole[border(i):border(i+1)]
}

// peer is another library, in a process of its own.
type peer struct {
	command *exec.Cmd
	jobs    io.WriteCloser
	answers *bufio.Reader
}

func startPeer(python string, arguments ...string) (*peer, error) {
	c := exec.Command(python, append([]string{"benchmarks/tokenizer/peer.py"}, arguments...)...)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &peer{c, in, bufio.NewReader(out)}, c.Start()
}

func (p *peer) do(job string) (seconds float64, digest string, err error) {
	if _, err := fmt.Fprintln(p.jobs, job); err != nil {
		return 0, "", err
	}
	_, err = fmt.Fscanln(p.answers, &seconds, &digest)
	return seconds, digest, err
}

func (p *peer) stop() {
	p.jobs.Close()
	p.command.Wait()
}
