import { lazy, Suspense, useEffect, useRef, useState } from 'react'
import { Link, Redirect, Route, Switch, useLocation, useSearch } from 'wouter'
import { copy } from '../lib/copy'
import { available, press, table, useCommands } from '../lib/keys'
import { isPaused, setPaused, useLiveUpdates } from '../lib/live'
import { type Me, useMe } from '../lib/me'
import { preferences, setPreferences, usePreferences } from '../lib/preferences'
import { queries } from '../lib/query'
import { logout, useSession } from '../lib/session'
import { Icon, IconButton, Keys, Loading, ProblemNote, Toasts, toast } from '../ui'
import { SaveView } from '../ui/saved'
import { Boundary } from './boundary'
import { SessionEnd } from './ended'
import { Held } from './held'
import { Help } from './help'
import { LiveState } from './live'
import { Palette } from './palette'
import { places, routes } from './routes'
import { titled, useWaiting } from './waits'

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

function useShellCommands(openHelp: () => void, openPalette: () => void, saveView: () => void) {
  const [, go] = useLocation()
  useCommands([
    { id: 'palette', run: openPalette },
    { id: 'help', run: openHelp },
    { id: 'pause', run: () => setPaused(!isPaused()) },
    { id: 'logout', run: () => void logout() },
    { id: 'refresh', run: () => void queries.invalidateQueries() },
    { id: 'copy_link', run: () => void copy(location.href, 'Link copied') },
    { id: 'save_view', run: saveView },
    { id: 'theme', run: () => setPreferences({ theme: next[preferences().theme] }) },
    { id: 'zone', run: () => setPreferences({ zone: preferences().zone === 'UTC' ? 'local' : 'UTC' }) },
    { id: 'letters', run: () => setPreferences({ letters: preferences().letters === 'on' ? 'off' : 'on' }) },
    ...places.map((place) => ({ id: place.command, run: () => go(place.path) })),
  ])
}

// useArrival moves the focus to the main part when another view is opened, and names the document after it.
function useArrival(place: string, title: string) {
  const before = useRef(place)
  const named = titled(title, useWaiting())
  useEffect(() => {
    document.title = named
  }, [named])
  useEffect(() => {
    if (before.current !== place) document.getElementById('main')?.focus({ preventScroll: true })
    before.current = place
  }, [place])
}

function Rail({ at, onPalette, onHelp }: { at: string; onPalette: () => void; onHelp: () => void }) {
  return (
    <nav className="rail" aria-label="Views">
      <p className="brand">Countersign</p>
      {places.map((place) => (
        <Link
          key={place.path}
          href={place.path}
          className={place.steers ? 'place steers' : 'place'}
          aria-current={place.path === at ? 'page' : undefined}
        >
          <Icon name={place.icon} />
          <span>{place.title}</span>
          <Keys of={table[place.command].keys[0]!} />
        </Link>
      ))}
      <div className="rail-end">
        <LiveState />
        <IconButton icon="search" label="Find anything, or run a command" onClick={onPalette} />
        <IconButton icon="question" label="Keys of this view" onClick={onHelp} />
      </div>
    </nav>
  )
}

type Commands = ReturnType<typeof available>

// Shell is the page for whoever is logged in.
function Shell({ me }: { me: Me }) {
  const [location] = useLocation()
  const search = useSearch()
  const [help, setHelp] = useState<Commands>()
  const [palette, setPalette] = useState<Commands>()
  const [saving, setSaving] = useState<string>()
  usePreferences()
  useSession(me)
  useLiveUpdates(me.operations.includes('streamEvents'))
  useShellCommands(
    () => setHelp(available(0)),
    () => setPalette(available(0)),
    () => setSaving(location + (search && `?${search}`)),
  )
  const place = '/' + (location.split('/')[1] ?? '')
  const route = routes.find((one) => one.place === place)
  useArrival(place, route?.title ?? 'Not found')
  return (
    <div className="shell">
      <a className="skip" href="#main">
        Skip to content
      </a>
      <Held />
      <Rail at={place} onPalette={() => setPalette(available(0))} onHelp={() => setHelp(available(0))} />
      <main id="main" tabIndex={-1}>
        <Boundary about={location}>
          <Suspense fallback={<Loading what="the view" />}>
            <Switch>
              {routes.map(({ path, view: View }) => (
                <Route key={path} path={path}>
                  {(params: { id?: string }) => <View id={params.id!} />}
                </Route>
              ))}
              <Route path="/">
                <Redirect to="/inbox" replace />
              </Route>
              <Route>
                <div className="page">
                  <h1>Not found</h1>
                  <p>This page does not exist. Use the menu on the left.</p>
                </div>
              </Route>
            </Switch>
          </Suspense>
        </Boundary>
      </main>
      <SessionEnd />
      {help && <Help commands={help} onClose={() => setHelp(undefined)} />}
      {saving && <SaveView path={saving} onClose={() => setSaving(undefined)} />}
      {palette && <Palette commands={palette} onClose={() => setPalette(undefined)} />}
    </div>
  )
}

const Login = lazy(() => import('../views/login/view'))
const Connect = lazy(() => import('../views/connect/view'))

// Entry shows the page to whoever is logged in, and the login to all others.
function Entry() {
  const me = useMe()
  const [location] = useLocation()
  const search = useSearch()
  const here = location + (search && `?${search}`)
  if (me.data) return <Shell me={me.data} />
  if (me.isPending) return <Loading what="the page" />
  if (me.error.status === 401)
    return <Redirect to={here === '/' ? '/login' : `/login?to=${encodeURIComponent(here)}`} replace />
  return (
    <main id="main" className="login">
      <ProblemNote error={me.error} onRetry={() => void me.refetch()} />
    </main>
  )
}

export function App() {
  useKeys()
  return (
    <>
      <Suspense fallback={<Loading what="the page" />}>
        <Switch>
          <Route path="/login">
            <Login />
          </Route>
          <Route path="/connect">
            <Connect />
          </Route>
          <Route>
            <Entry />
          </Route>
        </Switch>
      </Suspense>
      <Toasts />
    </>
  )
}
