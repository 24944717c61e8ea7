// The choice between light, dark, and what the system prefers. It is not a module, so that it runs
// before the page is drawn for the first time.
'use strict'
{
  const choices = ['system', 'light', 'dark']
  let chosen = 'system'
  try {
    chosen = localStorage.getItem('theme') ?? chosen
  } catch { /* storage is switched off: the choice lasts as long as the page */ }

  const apply = () => {
    if (!choices.includes(chosen)) chosen = 'system'
    document.documentElement.dataset.theme = chosen
    const button = document.getElementById('theme')
    if (button) {
      button.textContent = chosen[0].toUpperCase() + chosen.slice(1)
      button.setAttribute('aria-label', `Colours: ${chosen}. Change to ${next()}`)
      button.title = button.getAttribute('aria-label')
    }
  }
  const next = () => choices[(choices.indexOf(chosen) + 1) % choices.length]

  apply()
  addEventListener('DOMContentLoaded', () => {
    apply()
    document.getElementById('theme').addEventListener('click', () => {
      chosen = next()
      try {
        localStorage.setItem('theme', chosen)
      } catch { /* the same */ }
      apply()
    })
  })
}
