// The page: what is shown follows from the address (route.js) and from the state stream.

import { EventList } from './events.js'
import { List } from './list.js'
import { Model } from './model.js'
import { Group, groupOf, groups, One } from './objects.js'
import { Pod } from './pod.js'
import { here } from './route.js'
import { follow, known, remember } from './stream.js'
import { clock, command, el, mark, setText } from './words.js'

const main = document.getElementById('main')
const link = document.getElementById('link')
const problem = document.getElementById('problem')
const model = new Model()
let view, stop

// viewOf returns the view of a path, its name in the navigation, and its title.
function viewOf([kind, namespace, name, part]) {
  if (kind === 'pods' && name) return [new Pod(`${namespace}/${name}`, part), '', `${namespace}/${name}`]
  if (Object.hasOwn(groups, kind)) return [new Group(kind), kind, groups[kind].title]
  if (groupOf(kind) && name) return [new One(kind, `${namespace}/${name}`), groupOf(kind), name]
  if (kind === 'events') return [new EventList(), 'events', 'Events']
  return [new List(), '', '']
}

// route shows what the address selects, and takes the token out of it.
function route() {
  const token = /^#token=([A-Za-z0-9]+)$/.exec(location.hash)
  if (token) {
    remember(token[1])
    history.replaceState(null, '', '#/')
    connect()
  }
  const first = view === undefined
  view?.close()
  const [next, group, title] = viewOf(here().path)
  view = next
  document.title = title ? `${title} – podrun` : 'podrun'
  for (const a of document.querySelectorAll('header nav a')) mark(a, 'aria-current', a.hash === '#/' + group ? 'page' : null)
  main.replaceChildren(view.element)
  main.dataset.view = location.hash
  view.show(model)
  if (first) return
  scrollTo(0, 0)
  main.querySelector('h1')?.focus() // a screen reader reads what has been opened
}

function draw() {
  if (document.hidden) return
  setText(document.getElementById('host'), model.host)
  setText(problem, model.problem)
  problem.hidden = model.problem === ''
  view.show(model)
}

function connect() {
  stop?.abort()
  if (!known()) {
    refused('the token is missing')
    return
  }
  stop = new AbortController()
  follow('api/state', stop.signal, u => {
    model.apply(u)
    draw()
  }, (state, why) => {
    if (state === 'refused') return refused(why)
    const open = state === 'open'
    mark(link, 'data-mood', open ? 'good' : 'bad')
    setText(link, open ? 'live' : `no connection, reconnecting … is podrun ui still running?` + (model.loaded ? ` State of ${clock(model.now, true)}.` : ''))
    main.classList.toggle('stale', !open)
  })
}

function refused(why) {
  setText(link, 'no access')
  mark(link, 'data-mood', 'bad')
  view?.close()
  view = { show() {}, close() {} }
  main.replaceChildren(el('h1', { tabindex: '-1' }, 'No access'),
    el('p', { class: 'none' }, `${why}. `, command('podrun ui'), ' prints an address with a token each time it is started: open it.'))
}

addEventListener('hashchange', route)
document.querySelector('.skip').addEventListener('click', e => {
  e.preventDefault() // the address selects a view
  main.focus()
})
document.addEventListener('visibilitychange', draw)
addEventListener('keydown', e => {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName) && e.target.type !== 'checkbox'
  if (e.key === 'Escape' && here().path.length > 1) location.hash = '#/' + (groupOf(here().path[0]) ?? '')
  if (e.key === '/' && !typing && !e.ctrlKey && !e.metaKey) {
    e.preventDefault()
    main.querySelector('input[type=search]')?.focus()
  }
})
route()
if (!stop) connect()
