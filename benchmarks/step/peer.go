package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
)

// peer is a running peer.py.
type peer struct {
	process *exec.Cmd
	to      *json.Encoder
	from    *bufio.Scanner
	close   func() error
}

func startPeer(python, folder string, threads int) (*peer, error) {
	process := exec.Command(python, "benchmarks/step/peer.py", folder, strconv.Itoa(threads))
	process.Stderr = os.Stderr
	in, err := process.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := process.Start(); err != nil {
		return nil, fmt.Errorf("%w: name the Python of benchmarks/peers/requirements.txt with -python", err)
	}
	return &peer{process: process, to: json.NewEncoder(in), from: bufio.NewScanner(out), close: in.Close}, nil
}

// step runs one step of a task in the peer, on its own copy of the model.
func (p *peer) step(task, mode string, sequences [][]int32) (seconds, loss float64, err error) {
	if err := p.to.Encode(map[string]any{"task": task, "mode": mode, "sequences": sequences}); err != nil {
		return 0, 0, err
	}
	if !p.from.Scan() {
		return 0, 0, fmt.Errorf("peer.py ended: %w", errors.Join(p.from.Err(), p.process.Wait()))
	}
	var answer struct {
		Seconds, Loss float64
		Error         string
	}
	if err := json.Unmarshal(p.from.Bytes(), &answer); err != nil {
		return 0, 0, err
	}
	if answer.Error != "" {
		return 0, 0, errors.New(answer.Error)
	}
	return answer.Seconds, answer.Loss, nil
}

func (p *peer) stop() error { return errors.Join(p.close(), p.process.Wait()) }
