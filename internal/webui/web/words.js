// How things are written: elements, texts, ages, amounts.

// el makes an element. Children are elements or texts; what is a text stays one.
export function el(name, attributes = {}, ...children) {
  const e = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith('on')) e.addEventListener(key.slice(2), value)
    else if (value === true) e.setAttribute(key, '')
    else if (value !== false && value != null) e.setAttribute(key, value)
  }
  e.append(...children)
  return e
}

// setText changes an element's text, if it is another one: what has not changed stays selected,
// and is not read out again.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text
}

// mark changes an attribute, if it has another value; null takes it away.
export function mark(element, name, value) {
  if (element.getAttribute(name) === value) return
  if (value === null) element.removeAttribute(name)
  else element.setAttribute(name, value)
}

// Invisible characters, and characters that change the direction of writing, are spelled out: podrun's own
// tables do the same (internal/report).
const active = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g

export function plain(text) {
  return String(text).replace(active, c => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'))
}

// age returns how long seconds are, as kubectl does.
export function age(seconds) {
  const s = Math.max(Math.floor(seconds), 0)
  const m = Math.floor(s / 60), h = Math.floor(m / 60), d = Math.floor(h / 24), y = Math.floor(d / 365)
  const pair = (a, unit, b, small) => b ? `${a}${unit}${b}${small}` : `${a}${unit}`
  if (s < 120) return `${s}s`
  if (m < 10) return pair(m, 'm', s % 60, 's')
  if (h < 3) return `${m}m`
  if (h < 8) return pair(h, 'h', m % 60, 'm')
  if (h < 48) return `${h}h`
  if (d < 8) return pair(d, 'd', h % 24, 'h')
  if (y < 2) return `${d}d`
  return y < 8 ? pair(y, 'y', d % 365, 'd') : `${y}y`
}

// clock returns the local time of milliseconds since 1970, with seconds on request.
export function clock(ms, seconds) {
  const t = new Date(ms), two = n => String(n).padStart(2, '0')
  return two(t.getHours()) + ':' + two(t.getMinutes()) + (seconds ? ':' + two(t.getSeconds()) : '')
}

// unknown stands for a value that the kernel does not provide.
export const unknown = '–'

// cores returns thousandths of a processor as podrun top does.
export function cores(n) { return n == null ? unknown : `${n}m` }

// bytes returns an amount of memory as podrun top does.
export function bytes(n) {
  if (n == null) return unknown
  if (n === 0) return '0'
  return n < 1 << 20 ? `${Math.max(n >> 10, 1)}Ki` : `${Math.floor(n / (1 << 20))}Mi`
}

const failed = /Err|BackOff|Fail|OOM|Evicted|Unknown|Signal|ExitCode|Deadline|Invalid|CannotRun|Lost/

// mood returns how a pod's status looks: good, busy, bad or done.
export function mood(pod) {
  const [ready, all] = pod.ready.split('/')
  if (failed.test(pod.status)) return 'bad'
  if (pod.status === 'Completed' || pod.status === 'Succeeded') return 'done'
  return pod.status === 'Running' && ready === all ? 'good' : 'busy'
}

// rowMood returns how the row of an object looks, by the columns that kubectl has for its state.
export function rowMood(row) {
  const status = row['STATUS'] ?? ''
  if (failed.test(status)) return 'bad'
  if (/^(Bound|Available|Active|Ready)$/.test(status)) return 'good'
  if (/^Complete/.test(status)) return 'done'
  if (status) return 'busy'
  const [ready, all] = (row['READY'] ?? '').includes('/') ? row['READY'].split('/') : [row['READY'], row['DESIRED']]
  if (ready == null || all == null) return undefined
  return Number(ready) >= Number(all) ? 'good' : 'busy'
}

// command returns a command line to copy.
export function command(text) { return el('code', { class: 'command' }, text) }

// pairs shows names and values in a dl, and leaves what has not changed alone. Without a value a name
// is not shown.
export function pairs(list, all) {
  const shown = all.filter(([, value]) => value)
  while (list.children.length > shown.length) list.lastElementChild.remove()
  shown.forEach(([name, value], i) => {
    const pair = list.children[i] ?? list.appendChild(el('div', {}, el('dt'), el('dd')))
    setText(pair.firstElementChild, name)
    setText(pair.lastElementChild, plain(value))
  })
}
