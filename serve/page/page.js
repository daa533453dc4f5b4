// The page of caper serve. Whatever comes from a database or a model becomes text, never
// markup.
'use strict';

const at = (id) => document.getElementById(id);

// element makes <tag class="..."> with children, texts or elements.
function element(tag, name, ...children) {
  const e = document.createElement(tag);
  if (name) e.className = name;
  e.append(...children.filter((c) => c !== null && c !== undefined));
  return e;
}

async function call(path, body) {
  const headers = {};
  if (at('token').value) headers.Authorization = 'Bearer ' + at('token').value;
  if (body) headers['Content-Type'] = 'application/json';
  const response = await fetch(path, { method: body ? 'POST' : 'GET', headers, body: body && JSON.stringify(body) });
  let value;
  try {
    value = await response.json();
  } catch {
    throw new Error('the service answered ' + response.status + ' without a reason');
  }
  if (response.status === 401) at('token-field').hidden = false;
  if (!response.ok) throw new Error(value.error);
  return value;
}

function say(text, bad) {
  at('status').textContent = text;
  at('status').className = bad ? 'bad' : 'quiet';
}

let examples = [];

async function start() {
  try {
    const known = await call('api/databases');
    at('database').replaceChildren(...known.databases.map((id) => new Option(id, id)));
    examples = known.examples;
    if (examples.length) {
      at('example-field').hidden = false;
      at('example').replaceChildren(new Option('choose one of ' + examples.length, ''), ...examples.map((q, i) => new Option(q.db_id + ': ' + q.question, i)));
    }
    say('');
    await showSchema();
  } catch (e) {
    say(e.message, true);
  }
}

async function showSchema() {
  const id = at('database').value;
  if (!id) return;
  try {
    const { tables } = await call('api/databases/' + encodeURIComponent(id));
    at('schema').replaceChildren(...tables.map((t) => element('p', '', element('b', '', t.name), ' ',
      element('span', 'quiet', t.columns.map((c) => c.type ? c.name + ' ' + c.type.toLowerCase() : c.name).join(', ')))));
  } catch (e) {
    at('schema').replaceChildren(element('p', 'bad', e.message));
  }
}

const shades = ['low3', 'low2', 'low1', 'mid', 'high1', 'high2', 'high3'];

// shade is the colour of a score by the probability that it stands for.
function shade(score) {
  const p = 1 / (1 + Math.exp(-score));
  return shades[[0.1, 0.25, 0.4, 0.6, 0.75, 0.9].filter((bound) => p >= bound).length];
}

// query shows a query, its clauses coloured.
function query(q) {
  const line = element('div', 'sql');
  for (const c of q.clauses) {
    if (line.childNodes.length) line.append(' ');
    const text = element('span', c.score === undefined ? '' : shade(c.score), c.text.trim());
    if (c.score !== undefined) {
      text.title = c.kind + ': score ' + c.score.toFixed(3);
      text.append(element('small', '', c.score.toFixed(1)));
    }
    line.append(text);
  }
  if (!q.clauses.length) line.append(q.sql || '(no query)');
  return line;
}

function cell(value) {
  return value === null ? element('td', 'null', 'NULL') : element('td', '', String(value));
}

function rows(r) {
  if (!r.columns.length) return element('p', 'quiet', 'no columns');
  const table = element('table', '', element('thead', '', element('tr', '', ...r.columns.map((c) => element('th', '', c)))),
    element('tbody', '', ...r.rows.map((row) => element('tr', '', ...row.map(cell)))));
  const all = r.total_rows + (r.more ? ' or more' : '') + (r.total_rows === 1 ? ' row' : ' rows');
  return element('div', '', element('div', 'scroll', table),
    element('p', 'quiet', r.rows.length < r.total_rows ? 'the first ' + r.rows.length + ' of ' + all : all));
}

// outcome says in words what the chosen query came to.
function outcome(a) {
  switch (a.state) {
    case 'clean': return rows(a.result);
    case 'degenerate': return element('div', '', element('p', 'warn', 'The result says little: only NULL or a row of zeros.'), rows(a.result));
    case 'empty': return element('p', 'warn', 'The query runs and returns no rows.');
    case 'timeout': return element('p', 'warn', 'The query was stopped at its limit: ' + a.message);
    case 'rejected': return element('p', 'bad', 'None of the queries can run on this database. ' + (a.message || ''));
    default: return element('p', 'bad', 'The query fails: ' + (a.message || a.state));
  }
}

const count = (n, thing) => n + ' ' + thing + (n === 1 ? '' : 's');

function candidateOf(c) {
  const head = element('p', '', element('b', '', (c.chosen ? '✓ ' : '') + c.source + (c.style ? '/' + c.style : '') + ' #' + c.sample),
    element('span', 'badge ' + c.state, c.state.replace('_', ' ')),
    c.rows === undefined ? null : element('span', 'quiet', count(c.rows, 'row')),
    c.class ? element('span', 'quiet', 'answer ' + c.class) : null,
    c.score === undefined ? null : element('span', 'quiet', 'score ' + c.score.toFixed(2)));
  const item = element('div', 'candidate', head, query(c));
  if (c.message) item.append(element('p', 'quiet', c.message));
  for (const f of c.findings || []) item.append(element('p', 'repair', f.code + ': ' + f.message));
  for (const r of c.repairs || []) {
    item.append(element('p', 'repair', 'repaired by ' + r.by + (r.note ? ' (' + r.note + ')' : '') + ', it was ' + r.state + (r.message ? ' (' + r.message + ')' : '') + ': ',
      element('span', 'code', r.of)));
  }
  return item;
}

function scale() {
  return element('p', 'scale', element('span', '', 'suspect'), ...shades.map((s) => element('i', s)), element('span', '', 'trusted'));
}

function show(a) {
  const chosen = a.candidates.find((c) => c.chosen);
  const scored = chosen && chosen.score !== undefined;
  const card = element('div', 'card', element('h2', '', 'Answer'), query(chosen || { clauses: [], sql: a.sql }), scored ? scale() : null, outcome(a));
  const vote = element('div', 'card', element('h2', '', 'How it was chosen'), element('p', '', a.why + '.'),
    ...a.classes.map((c, i) => element('p', 'quiet', 'answer ' + (i + 1) + ': ' + count(c.votes, 'vote') + ' of ' + count(c.groups, 'group') +
      ', shared cells ' + c.s_maj.toFixed(3) + ', judge ' + c.s_rm.toFixed(3) + ', together ' + c.score.toFixed(3))),
    element('h3', '', count(a.candidates.length, 'candidate')), ...a.candidates.map(candidateOf),
    element('p', 'quiet', count(a.cost.executions, 'execution') + ', ' + count(a.cost.calls || 0, 'model call') + ', ' + a.cost.ms.toFixed(0) + ' ms'));
  at('answer').replaceChildren(card, vote);
  at('answer').hidden = false;
}

at('form').addEventListener('submit', async (event) => {
  event.preventDefault();
  at('ask').disabled = true;
  at('answer').hidden = true;
  say('asking ...');
  const body = { db_id: at('database').value, question: at('question').value, evidence: at('evidence').value };
  const own = at('candidates').value.split(/\n\s*\n/).map((s) => s.trim()).filter(Boolean);
  if (own.length) body.candidates = own;
  try {
    show(await call('api/ask', body));
    say('');
  } catch (e) {
    say(e.message, true);
  }
  at('ask').disabled = false;
});
at('database').addEventListener('change', showSchema);
at('token').addEventListener('change', start);
at('example').addEventListener('change', () => {
  const q = examples[at('example').value];
  if (!q) return;
  at('database').value = q.db_id;
  at('question').value = q.question;
  at('evidence').value = q.evidence || '';
  showSchema();
});
start();
