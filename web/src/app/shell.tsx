import { Suspense, useEffect, useRef, useState } from 'react'
import { Link, Redirect, Route, Switch, useLocation } from 'wouter'
import { copy } from '../lib/copy'
import { available, press, useCommands } from '../lib/keys'
import { preferences, setPreferences, usePreferences } from '../lib/preferences'
import { queries } from '../lib/query'
import { Icon, Keys, Loading, toast, Toasts } from '../ui'
import { table } from '../lib/keys'
import { Boundary } from './boundary'
import { Help } from './help'
import { places, routes } from './routes'

// useKeys listens to the keyboard for the whole page.
function useKeys() {
  useEffect(() => {
    const heard = (event: KeyboardEvent) => {
      if (press(event, (why) => toast({ text: why }))) event.preventDefault()
    }
    addEventListener('keydown', heard)
    return () => removeEventListener('keydown', heard)
  }, [])
}

const next = { system: 'light', light: 'dark', dark: 'system' } as const

function useShellCommands(openHelp: () => void) {
  const [, go] = useLocation()
  useCommands([
    { id: 'help', run: openHelp },
    { id: 'refresh', run: () => void queries.invalidateQueries() },
    { id: 'copy_link', run: () => void copy(location.href, 'Link copied') },
    { id: 'theme', run: () => setPreferences({ theme: next[preferences().theme] }) },
    { id: 'zone', run: () => setPreferences({ zone: preferences().zone === 'UTC' ? 'local' : 'UTC' }) },
    { id: 'letters', run: () => setPreferences({ letters: preferences().letters === 'on' ? 'off' : 'on' }) },
    ...places.map((place) => ({ id: place.command, run: () => go(place.path) })),
  ])
}

// useArrival moves the focus to the main part when another view is opened, and names the document after it.
function useArrival(place: string, title: string) {
  const before = useRef(place)
  useEffect(() => {
    document.title = `${title} · Countersign`
    if (before.current !== place) document.getElementById('main')?.focus({ preventScroll: true })
    before.current = place
  }, [place, title])
}

function Rail({ at }: { at: string }) {
  return (
    <nav className="rail" aria-label="Views">
      <Link href="/inbox" className="brand" aria-label="Countersign, inbox">C</Link>
      {places.map((place) => (
        <Link key={place.path} href={place.path} className="place" aria-current={place.path === at ? 'page' : undefined}>
          <Icon name={place.icon} />
          <span>{place.title}</span>
          <Keys of={table[place.command].keys[0]!} />
        </Link>
      ))}
    </nav>
  )
}

export function Shell() {
  const [location] = useLocation()
  const [help, setHelp] = useState<ReturnType<typeof available>>()
  usePreferences()
  useKeys()
  useShellCommands(() => setHelp(available()))
  const place = '/' + (location.split('/')[1] ?? '')
  const route = routes.find((one) => one.place === place)
  useArrival(place, route?.title ?? 'Not found')
  return (
    <div className="shell">
      <a className="skip" href="#main">Skip to the view</a>
      <Rail at={place} />
      <main id="main" tabIndex={-1}>
        <Boundary about={location}>
          <Suspense fallback={<Loading what="the view" />}>
            <Switch>
              {routes.map(({ path, view: View }) => (
                <Route key={path} path={path}>{(params: { id?: string }) => <View id={params.id!} />}</Route>
              ))}
              <Route path="/"><Redirect to="/inbox" replace /></Route>
              <Route><h1>Not found</h1><p>There is no such view.</p></Route>
            </Switch>
          </Suspense>
        </Boundary>
      </main>
      <Toasts />
      {help && <Help commands={help} onClose={() => setHelp(undefined)} />}
    </div>
  )
}
