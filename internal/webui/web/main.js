// The page: what is shown follows from the address, #/ or #/pods/NAMESPACE/NAME, and from what
// the state stream says.

import { List } from './list.js'
import { Model } from './model.js'
import { Pod } from './pod.js'
import { follow, known, remember } from './stream.js'
import { el, mark, say } from './words.js'

const main = document.getElementById('main')
const link = document.getElementById('link')
const problem = document.getElementById('problem')
const model = new Model()
let view, stop

// route shows what the address says, and takes the token out of it.
function route() {
  const token = /^#token=([A-Za-z0-9]+)$/.exec(location.hash)
  if (token) {
    remember(token[1])
    history.replaceState(null, '', '#/')
    connect()
  }
  if (location.hash === '#main') return // the link that skips the head
  const pod = /^#\/pods\/([a-z0-9.-]+\/[a-z0-9.-]+)$/.exec(location.hash)
  view?.close()
  view = pod ? new Pod(pod[1]) : new List()
  document.title = pod ? `${pod[1]} – podrun` : 'podrun'
  main.replaceChildren(view.element)
  scrollTo(0, 0)
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
    say(document.getElementById('host'), model.host)
    say(problem, model.problem)
    problem.hidden = model.problem === ''
    view.show(model)
  }, (state, why) => {
    mark(link, 'data-mood', state === 'open' ? 'good' : 'bad')
    if (state === 'refused') refused(why)
    else say(link, state === 'open' ? 'live' : 'no connection: is podrun ui still running?')
  })
}

function refused(why) {
  say(link, 'no access')
  mark(link, 'data-mood', 'bad')
  view?.close()
  view = { show() {}, close() {} }
  main.replaceChildren(el('p', { class: 'none' }, `${why}. `, el('code', {}, 'podrun ui'), ' prints an address with a token each time it is started: open it.'))
}

addEventListener('hashchange', route)
addEventListener('keydown', e => {
  if (e.key === 'Escape' && location.hash !== '#/') location.hash = '#/'
})
route()
if (!stop) connect()
