// The page of caper serve. Whatever comes from a database or a model becomes text, never
// markup.
'use strict';

const at = (id) => document.getElementById(id);

// element makes <tag class="..."> with children, texts or elements.
function element(tag, name, ...children) {
  const e = document.createElement(tag);
  if (name) e.className = name;
  e.append(...children.flat().filter((c) => c !== null && c !== undefined));
  return e;
}

const count = (n, thing) => n.toLocaleString('en') + ' ' + thing + (n === 1 ? '' : 's');
const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? '' : '.');

// Characters that cannot be seen, or that turn the direction of writing round.
const unseen = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/;

// plain is a text with its unseen characters written as U+XXXX.
function plain(text) {
  return text.split(new RegExp('(' + unseen.source + ')')).filter(Boolean).map((part) =>
    unseen.test(part) ? element('span', 'unseen', 'U+' + part.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')) : part);
}

// The service.

async function call(path, body, signal) {
  const headers = {};
  if (at('token').value) headers.Authorization = 'Bearer ' + at('token').value;
  if (body) headers['Content-Type'] = 'application/json';
  let response, value;
  try {
    response = await fetch(path, { method: body ? 'POST' : 'GET', headers, body: body && JSON.stringify(body), signal });
    value = await response.json();
  } catch (e) {
    if (e.name === 'AbortError') throw e;
    throw new Error(response ? 'The service answered ' + response.status + ' without a reason.' : 'The service does not answer: is caper serve still running?');
  }
  if (response.status === 401) at('token-field').hidden = false;
  if (!response.ok) throw new Error(sentence(value.error));
  return value;
}

function complain(title, error) {
  at('problem').replaceChildren(element('h2', '', title), element('p', '', plain(error.message)));
  at('problem').hidden = false;
}

// The form.

let examples = [];

async function start() {
  at('problem').hidden = true;
  try {
    const known = await call('api/databases');
    at('database').replaceChildren(...known.databases.map((id) => new Option(id, id)));
    sessionStorage.setItem('token', at('token').value);
    at('more').open = known.generators === 0 && !known.examples;
    await showDatabase();
  } catch (e) {
    if (at('token-field').hidden) complain('No databases', e);
    else complain('This service asks for its token', new Error((at('token').value ? 'That is another one. ' : '') + 'Put it into the field above.'));
  }
}

async function showDatabase() {
  const id = at('database').value;
  if (!id) return;
  at('schema').replaceChildren();
  at('example-field').hidden = true;
  try {
    const { tables, examples: asked } = await call('api/databases/' + encodeURIComponent(id));
    if (at('database').value !== id) return; // another was chosen meanwhile
    at('schema').replaceChildren(...tables.map((t) => element('p', '', element('b', '', plain(t.name)), ' ',
      element('span', 'quiet', plain(t.columns.map((c) => c.name + (c.type ? ' ' + c.type.toLowerCase() : '')).join(', '))))));
    examples = asked;
    at('example-field').hidden = examples.length === 0;
    at('example').replaceChildren(new Option('choose one of ' + examples.length, ''), ...examples.map((q, i) => new Option(q.question, i)));
  } catch (e) {
    complain('This database cannot be read', e);
  }
}

at('form').addEventListener('submit', async (event) => {
  event.preventDefault();
  if (!at('stop').hidden) return;
  const body = { db_id: at('database').value, question: at('question').value, evidence: at('evidence').value };
  const own = at('candidates').value.split(/\n\s*\n/).map((s) => s.trim()).filter(Boolean);
  if (own.length) body.candidates = own;
  at('problem').hidden = at('answer').hidden = at('ask').disabled = true;
  at('stop').hidden = false;
  const began = performance.now(), stopped = new AbortController();
  at('stop').onclick = () => stopped.abort();
  const say = () => { at('status').textContent = 'working, ' + ((performance.now() - began) / 1000).toFixed(0) + ' s'; };
  const clock = setInterval(say, 1000);
  say();
  try {
    show(await call('api/ask', body, stopped.signal));
    at('status').textContent = '';
  } catch (e) {
    at('status').textContent = e.name === 'AbortError' ? 'stopped' : '';
    if (e.name !== 'AbortError') complain('No answer', e);
  }
  clearInterval(clock);
  at('stop').hidden = true;
  at('ask').disabled = false;
});

at('question').addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  at('form').requestSubmit(at('ask'));
});
at('database').addEventListener('change', showDatabase);
at('token').addEventListener('change', start);
at('example').addEventListener('change', () => {
  const q = examples[at('example').value];
  if (!q) return;
  at('question').value = q.question;
  at('evidence').value = q.evidence || '';
  if (q.evidence) at('more').open = true;
});

// The answer.

const shades = ['low3', 'low2', 'low1', 'mid', 'high1', 'high2', 'high3'];

// shade is the colour of a score by the probability that it stands for.
function shade(score) {
  const p = 1 / (1 + Math.exp(-score));
  return shades[[0.1, 0.25, 0.4, 0.6, 0.75, 0.9].filter((bound) => p >= bound).length];
}

// query shows a query, its clauses coloured; tall: a clause a line.
function query(q, tall) {
  const clauses = q.clauses.map((c) => {
    if (c.score === undefined) return element('span', 'clause', plain(c.text.trim()));
    const e = element('span', 'clause ' + shade(c.score), plain(c.text.trim()), element('small', '', c.score.toFixed(1)));
    e.title = c.kind + ': score ' + c.score.toFixed(3);
    return e;
  });
  if (!clauses.length) clauses.push(element('span', 'clause', q.sql ? plain(q.sql) : 'no text'));
  return element('div', 'sql' + (tall ? ' tall' : ''), clauses.flatMap((c) => [c, ' ']));
}

const scale = () => element('p', 'scale', 'suspect', shades.map((s) => element('i', s)), 'trusted');

function copyButton(text) {
  const b = element('button', 'small', 'Copy');
  b.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(text);
      b.textContent = 'Copied';
    } catch {
      b.textContent = 'Not allowed';
    }
  });
  return b;
}

function cell(value, numeric) {
  if (value === null) return element('td', 'null', 'NULL');
  return element('td', numeric ? 'number' : '', value === '' ? element('span', 'unseen', 'empty text') : plain(String(value)));
}

function grid(r) {
  const numeric = r.columns.map((_, i) => r.rows.every((row) => row[i] === null || typeof row[i] === 'number'));
  return element('div', 'scroll', element('table', '',
    element('thead', '', element('tr', '', r.columns.map((c, i) => element('th', numeric[i] ? 'number' : '', plain(c))))),
    element('tbody', '', r.rows.map((row) => element('tr', '', row.map((v, i) => cell(v, numeric[i])))))));
}

function rows(r) {
  const all = count(r.total_rows, 'row') + (r.more ? ', and there are more' : '');
  return [grid(r), element('p', 'quiet', r.rows.length < r.total_rows ? 'The first ' + r.rows.length + ' of ' + all : all)];
}

const notice = (kind, title, text) => element('div', 'notice ' + kind, element('b', '', title), ' ', text ? plain(text) : null);

// outcome says what the chosen query came to.
function outcome(a) {
  const message = a.message ? sentence(a.message) : '';
  switch (a.state) {
    case 'clean': return rows(a.result);
    case 'degenerate': return [notice('warn', 'The result says little:', 'only NULL, or one row of zeros.'), ...rows(a.result)];
    case 'empty': return [notice('warn', 'No rows.', 'The query runs, and nothing in the database fits it.')];
    case 'timeout': return [notice('warn', 'Stopped at its limit.', message)];
    case 'rejected': return [notice('bad', 'None of the queries can run on this database.', message)];
    case 'not_run': return [notice('bad', 'The database cannot be read.', message)];
    default: return [notice('bad', 'The query fails.', message)];
  }
}

// vote is the table of the classes of equal answers.
function vote(a) {
  if (a.stage === 'no-consensus') return null;
  const most = Math.max(...a.classes.map((c) => c.votes));
  const judged = a.classes.some((c) => c.s_rm !== 0.5);
  const row = (tag, cells) => element('tr', '', cells.map(([name, kind, title]) => {
    const e = element(tag, kind, name);
    if (title) e.title = title;
    return e;
  }));
  const line = (c, i) => {
    const bar = element('progress', '');
    bar.max = most;
    bar.value = c.votes;
    const e = row('td', [[i + 1, 'number'], [preview(c), 'preview'], [element('span', '', bar, String(c.votes)), 'votes'], [c.groups, 'number wide'],
      [c.s_maj.toFixed(3), 'number'], ...(judged ? [[c.s_rm.toFixed(3), 'number']] : []), [c.score.toFixed(3), 'number']]);
    if (i + 1 === a.candidates.find((x) => x.chosen).class) e.className = 'own';
    return e;
  };
  const head = row('th', [['class', 'number', 'candidates that give equal answers'], ['answer', '', 'its first rows'], ['votes', '', 'candidates that give it'],
    ['groups', 'number wide', 'generators and prompt styles that give it'], ['shared', 'number', 'S_maj: how much of it the other candidates share'],
    ...(judged ? [['judge', 'number', 'S_rm: how often the judge prefers it']] : []), ['score', 'number', judged ? 'shared + judge' : 'shared + 0.5, for want of a judge']]);
  return element('div', 'scroll', element('table', 'vote', element('thead', '', head), element('tbody', '', a.classes.map(line))));
}

// preview is the first rows of a class's answer in one text.
function preview(c) {
  if (!c.rows) return element('span', 'quiet', 'no rows');
  const text = c.first.map((row) => row.map((v) => v === null ? 'NULL' : String(v)).join(' | ')).join('; ');
  return element('span', '', plain(text + (c.first.length < c.rows ? '; ...' : '')));
}

const origin = (c) => c.source + (c.style ? '/' + c.style : '') + ' #' + c.sample;

// alike puts candidates together that are the same query with the same history.
function alike(candidates) {
  const groups = new Map();
  for (const c of candidates) {
    const key = JSON.stringify([c.sql, c.state, c.repairs]);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(c);
  }
  return [...groups.values()].sort((a, b) => b.some((c) => c.chosen) - a.some((c) => c.chosen) || b.length - a.length);
}

function candidates(group, voted) {
  const c = group[0], chosen = group.some((x) => x.chosen);
  const facts = [voted && c.class ? 'class ' + c.class : null, c.rows === undefined ? null : count(c.rows, 'row'), c.score === undefined ? null : 'score ' + c.score.toFixed(2)];
  const item = element('div', 'candidate' + (chosen ? ' chosen' : ''), element('p', '', element('b', '', group.map(origin).join(', ')),
    element('span', 'badge ' + c.state, c.state.replace('_', ' ')), chosen ? element('span', 'badge own', 'chosen') : null,
    element('span', 'quiet', facts.filter(Boolean).join(' · '))), query(c));
  const findings = (c.findings || []).filter((f) => f.code !== 'F9');
  for (const r of c.repairs || []) {
    item.append(element('div', 'repair', element('b', '', 'mended'), ' by ' + r.by + (r.note ? ': ' : ''), plain(r.note || ''),
      element('div', 'before', element('span', 'badge ' + r.state, r.state.replace('_', ' ')), ' ', element('span', 'code', plain(r.of)), r.message ? element('div', '', plain(r.message)) : null)));
  }
  if (!c.repairs && c.message && !findings.some((f) => f.message === c.message)) item.append(element('p', 'remark', plain(c.message)));
  if (!c.repairs) findings.forEach((f) => item.append(element('p', 'remark', f.code + ': ', plain(f.message))));
  return item;
}

function show(a) {
  const chosen = a.candidates.find((c) => c.chosen), groups = alike(a.candidates);
  const cost = [count(a.cost.executions, 'query') + ' run', count(a.cost.calls || 0, 'model call'), a.cost.failed ? count(a.cost.failed, 'call') + ' failed' : null,
    a.cost.ms < 1000 ? a.cost.ms.toFixed(0) + ' ms' : (a.cost.ms / 1000).toFixed(1) + ' s'];
  at('answer').replaceChildren(
    element('div', 'card', element('div', 'title', element('h2', '', 'Answer'), copyButton(a.sql)), query(chosen, true), chosen.score === undefined ? null : scale(), outcome(a)),
    element('div', 'card', element('h2', '', 'How it was chosen'), element('p', '', sentence(a.why)), vote(a)),
    element('div', 'card', element('h2', '', count(a.candidates.length, 'candidate') + (groups.length < a.candidates.length ? ', ' + groups.length + ' different' : '')),
      groups.map((g) => candidates(g, a.stage !== 'no-consensus')), element('p', 'quiet', cost.filter(Boolean).join(' · ').replace('querys', 'queries'))));
  at('answer').hidden = false;
  if (at('answer').getBoundingClientRect().top > innerHeight * 0.7) at('answer').scrollIntoView();
}

at('token').value = sessionStorage.getItem('token') || '';
start();
