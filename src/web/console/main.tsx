import "./style/console.css";
import { render } from "preact";
import { App } from "./app.tsx";

render(<App />, document.getElementById("console") as HTMLElement);
