// Draws the figures in the colours of the page: again when the reader's scheme changes, and for paper.
(() => {
  "use strict";
  const root = document.documentElement;
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const SERIES = 6;
  const PAPER = { autosize: false, width: 480, height: 255 };

  const colour = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
  const faint = (hex, alpha) => {
    const [r, g, b] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
    return `rgba(${r}, ${g}, ${b}, ${alpha})`;
  };

  function dressed(trace) {
    const own = colour(`s${trace.meta.series % SERIES}`);
    if (trace.mode === "markers") return { ...trace, marker: { ...trace.marker, color: own } };
    if (trace.meta.role === "band") return { ...trace, fillcolor: faint(own, 0.13) };
    const dress = {
      line: { ...trace.line, color: own },
      marker: { ...trace.marker, color: own, line: { color: colour("paper"), width: 1 } },
      hoverlabel: { bordercolor: own },
    };
    if (trace.text) dress.textfont = { color: own, size: 11 };
    if (trace.error_y) dress.error_y = { ...trace.error_y, color: own, thickness: 1.2 };
    return { ...trace, ...dress };
  }

  function axis(given) {
    return {
      ...given,
      gridcolor: colour("grid"), linecolor: colour("line"), zerolinecolor: colour("line"),
      ticks: "outside", ticklen: 4, tickcolor: colour("line"),
      title: { ...given.title, font: { size: 12 }, standoff: 10 },
    };
  }

  function layout(given, printing) {
    const family = getComputedStyle(document.body).fontFamily;
    return {
      xaxis: axis(given.xaxis), yaxis: axis(given.yaxis),
      showlegend: false, hovermode: "closest", dragmode: false,
      margin: { l: 56, r: 36, t: 18, b: 46 },
      paper_bgcolor: colour("paper"), plot_bgcolor: colour("paper"),
      font: { family, size: 12, color: colour("soft") },
      hoverlabel: { bgcolor: colour("panel"), font: { family, color: colour("ink") }, align: "left", namelength: -1 },
      ...(printing ? PAPER : { autosize: true }),
    };
  }

  const choice = document.getElementById("level");
  const isChosen = ({ meta }) => meta.choice === undefined || meta.choice === choice.value;

  function drawOne({ id, figure }, printing) {
    const config = {
      responsive: !printing, displayModeBar: printing ? false : "hover", displaylogo: false,
      modeBarButtons: [["toImage"]], toImageButtonOptions: { filename: id, scale: 2 },
    };
    const chosen = figure.data.filter(isChosen).map(dressed);
    Plotly.react(`chart-${id}`, chosen, layout(figure.layout, printing), config);
  }

  // What is in view is drawn at once, the rest one by one, so that the page answers in between. A
  // later drawing takes the place of one that is not through; paper waits for all.
  let latest = 0;
  function draw(printing, which = figures) {
    const own = ++latest;
    const isSeen = ({ id }) => document.getElementById(`chart-${id}`).getBoundingClientRect().top < innerHeight;
    const now = which.filter((one) => printing || isSeen(one));
    const later = which.filter((one) => !now.includes(one));
    delete root.dataset.drawn;
    now.forEach((one) => drawOne(one, printing));
    const next = () => {
      if (own !== latest) return;
      if (!later.length) root.dataset.drawn = printing ? "paper" : "screen";
      else {
        drawOne(later.shift(), printing);
        setTimeout(next);
      }
    };
    if (later.length) setTimeout(next);
    else next();
  }

  draw(false);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw(false));
  root.addEventListener("themechange", () => draw(false));
  choice?.addEventListener("change", () => figures.filter(({ choices }) => choices.length).forEach((one) => drawOne(one, false)));
  addEventListener("beforeprint", () => {
    root.classList.add("printing");
    document.querySelectorAll("details").forEach((part) => { part.open = true; });
    draw(true);
  });
  addEventListener("afterprint", () => {
    root.classList.remove("printing");
    draw(false);
  });
})();
