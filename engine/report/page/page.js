// Draws the charts of a page on canvases, over the SVGs that it has without scripts: zoom by dragging, linked between charts
// over the same x; the whole range by double click; values with units at the pointer. uPlot has axes, cursor and selection;
// lines and points are drawn here, from typed arrays. Of a line with more points than pixels, the least and the greatest
// value in each column of pixels are drawn, so that no peak is lost at any zoom.
"use strict";
(() => {
    const charts = [], root = getComputedStyle(document.documentElement), colour = name => root.getPropertyValue(name).trim();
    const dashes = [[1, 0], [6, 3], [2, 3]], colours = 7, tipped = 8, near = 30 /* pixels */;

    // Little-endian doubles, or floats, in base64.
    function numbers(text, isWide) {
        const bytes = atob(text), array = new Uint8Array(bytes.length);
        for (let i = 0; i < bytes.length; i++) array[i] = bytes.charCodeAt(i);
        return isWide ? new Float64Array(array.buffer) : new Float32Array(array.buffer);
    }

    function format(value) {
        if (!Number.isFinite(value)) return "-";
        const size = Math.abs(value);
        return size !== 0 && (size >= 1e7 || size < 1e-4) ? value.toExponential(3).replace(/\.?0*e\+?/, "e") : String(+value.toPrecision(6));
    }

    const word = (spec, x) => spec.labels ? spec.labels[Math.round(x)] ?? "" : format(x) + spec.xUnit;

    // The first of X, which is in order, that is at least VALUE.
    function lowerBound(x, value) {
        let low = 0, high = x.length;
        while (low < high) {
            const middle = (low + high) >> 1;
            if (x[middle] < value) low = middle + 1;
            else high = middle;
        }
        return low;
    }

    // Calls SEE with the indices of what of SERIES lies between MIN and MAX; of a line, with a point beyond on each side.
    function range(series, min, max) {
        if (!series.line) return [0, series.x.length];
        return [Math.max(0, lowerBound(series.x, min) - 1), Math.min(series.x.length, lowerBound(series.x, max) + 1)];
    }

    function widen(low, high, isLogarithmic, share) {
        if (!(low <= high)) return [0, 1];
        if (isLogarithmic) {
            const by = low === high ? 1.1 : Math.pow(high / low, share);
            return [low / by, high * by];
        }
        const by = low === high ? Math.abs(low) * share || 1 : (high - low) * share;
        return [low - by, high + by];
    }

    // The y axis of what is visible between MIN and MAX.
    function heights(chart, min, max) {
        let low = Infinity, high = -Infinity;
        chart.spec.series.forEach((series, s) => {
            if (chart.hidden.has(s)) return;
            const [from, to] = range(series, min, max), {x, y} = series;
            for (let i = from; i < to; i++) {
                if (!(x[i] >= min && x[i] <= max)) continue;
                if (y[i] < low) low = y[i];
                if (y[i] > high) high = y[i];
            }
        });
        for (const mark of chart.spec.yMarks) { low = Math.min(low, mark); high = Math.max(high, mark); }
        return widen(low, high, chart.spec.log[1], 0.05);
    }

    // Of a scale, what turns values into pixels of the canvas.
    function place(u, key) {
        const scale = u.scales[key], isLogarithmic = scale.distr === 3, box = u.bbox;
        const low = isLogarithmic ? Math.log10(scale.min) : scale.min, high = isLogarithmic ? Math.log10(scale.max) : scale.max;
        const each = (key === "x" ? box.width : -box.height) / (high - low);
        const start = (key === "x" ? box.left : box.top + box.height) - low * each;
        return isLogarithmic ? v => start + each * Math.log10(v) : v => start + each * v;
    }

    // A line as pixels of LAYER: in each column, a bar from the least to the greatest value. Pixels cost far less than strokes of
    // many short pieces; of a line with more points than columns no peak is lost.
    function drawDense(layer, series, from, to, atX, atY, box, pixel, [on, off]) {
        const {x, y} = series, {width, height, pixels} = layer, flat = 3;
        let column = -1, low = 0, high = 0, lastX = NaN, lastY = NaN;
        const bar = (at, top, bottom) => {
            if (at < 0 || at >= width || (off > 0 && bottom - top < flat && at % (on + off) >= on)) return; // dashes, but not of peaks
            const end = Math.min(height, Math.ceil(bottom + 0.5));
            for (let row = Math.max(0, Math.floor(top - 0.5)); row < end; row++) pixels[row * width + at] = pixel;
        };
        for (let i = from; i < to; i++) {
            const px = atX(x[i]) - box.left, py = atY(y[i]) - box.top, at = Math.floor(px);
            if (!Number.isFinite(py) || at !== column) {
                const slope = (py - lastY) / (px - lastX); // not a number: there is nothing to join
                const isJoined = Number.isFinite(slope);
                if (isJoined) {
                    const edge = lastY + slope * (column + 1 - lastX);
                    low = Math.min(low, edge), high = Math.max(high, edge);
                }
                if (!Number.isNaN(lastY)) bar(column, low, high);
                for (let c = Math.max(column + 1, 0); isJoined && c < Math.min(at, width); c++) {
                    const one = lastY + slope * (c - lastX), other = one + slope;
                    bar(c, Math.min(one, other), Math.max(one, other));
                }
                const edge = isJoined ? lastY + slope * (at - lastX) : py;
                column = at, low = Math.min(edge, py), high = Math.max(edge, py);
            }
            if (py < low) low = py;
            if (py > high) high = py;
            lastX = px, lastY = Number.isFinite(py) ? py : NaN;
        }
        if (!Number.isNaN(lastY)) bar(column, low, high);
    }

    const dashOf = s => dashes[Math.floor(s / colours) % dashes.length].map(d => d * devicePixelRatio);

    // Pixels over the inside of a chart, which are drawn at once.
    function layerOf(chart, box) {
        const width = Math.ceil(box.width), height = Math.ceil(box.height);
        chart.canvas ??= document.createElement("canvas");
        if (chart.canvas.width !== width || chart.canvas.height !== height) { chart.canvas.width = width; chart.canvas.height = height; }
        const image = new ImageData(width, height);
        return {width, height, image, pixels: new Uint32Array(image.data.buffer), canvas: chart.canvas};
    }

    // The colour "#rgb" or "#rrggbb" with OPACITY as a pixel of a little-endian machine.
    function pixelOf(hex, opacity) {
        const digits = hex.length === 4 ? [...hex.slice(1)].map(d => d + d).join("") : hex.slice(1, 7), value = parseInt(digits, 16);
        return (Math.round(255 * opacity) << 24 | (value & 255) << 16 | value & 0xff00 | value >> 16) >>> 0;
    }

    function drawLine(context, series, from, to, atX, atY) {
        const {x, y} = series;
        let isDown = false;
        context.lineCap = "round"; // a point alone is seen, too
        context.beginPath();
        for (let i = from; i < to; i++) {
            if (!Number.isFinite(y[i])) { isDown = false; continue; }
            const px = atX(x[i]), py = atY(y[i]);
            if (!isDown) context.moveTo(px, py);
            context.lineTo(px, py);
            isDown = true;
        }
        context.stroke();
    }

    function drawPoints(context, series, u, atX, atY) {
        const {x, y} = series, box = u.bbox, drawn = new Set(), size = 2.8 * devicePixelRatio;
        context.beginPath();
        for (let i = 0; i < x.length; i++) {
            const px = atX(x[i]), py = atY(y[i]);
            if (!(px >= box.left - size && px <= box.left + box.width + size && py >= box.top - size && py <= box.top + box.height + size)) continue;
            const key = Math.round(px) * 65536 + Math.round(py);
            if (drawn.has(key)) continue;
            drawn.add(key);
            context.moveTo(px + size, py);
            context.arc(px, py, size, 0, 7);
        }
        context.fill();
    }

    function drawSpans(chart, u, context, atX) {
        const box = u.bbox, ratio = devicePixelRatio, {spans, events} = chart.spec;
        context.font = 11 * ratio + "px system-ui, sans-serif";
        context.textBaseline = "top";
        context.textAlign = "left";
        spans.forEach(([from, to, name], k) => {
            const left = Math.max(atX(from), box.left), width = Math.min(atX(to), box.left + box.width) - left;
            if (!(width > 0)) return;
            context.fillStyle = colour("--shade");
            if (k % 2 === 0) context.fillRect(left, box.top, width, box.height);
            context.fillStyle = colour("--faint");
            if (context.measureText(name).width + 6 * ratio < width) context.fillText(name, left + 3 * ratio, box.top + 3 * ratio);
        });
        context.strokeStyle = colour("--faint");
        context.lineWidth = ratio;
        context.beginPath();
        for (const [at] of events) {
            const x = atX(at);
            context.moveTo(x, box.top + box.height);
            context.lineTo(x, box.top + box.height - 7 * ratio);
        }
        context.stroke();
    }

    function drawMarks(chart, u, context, atX, atY) {
        const box = u.bbox;
        context.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
        context.strokeStyle = colour("--faint");
        context.lineWidth = devicePixelRatio;
        context.beginPath();
        for (const mark of chart.spec.xMarks) { context.moveTo(atX(mark), box.top); context.lineTo(atX(mark), box.top + box.height); }
        for (const mark of chart.spec.yMarks) { context.moveTo(box.left, atY(mark)); context.lineTo(box.left + box.width, atY(mark)); }
        context.stroke();
    }

    function draw(chart, u) {
        const context = u.ctx, box = u.bbox, atX = place(u, "x"), atY = place(u, "y");
        context.save();
        context.beginPath();
        context.rect(box.left, box.top, box.width, box.height);
        context.clip();
        drawSpans(chart, u, context, atX);
        drawMarks(chart, u, context, atX, atY);
        const layer = layerOf(chart, box), isDense = (series, from, to) => series.line && 8 * (to - from) >= box.width;
        chart.spec.series.forEach((series, s) => {
            const [from, to] = range(series, u.scales.x.min, u.scales.x.max), isFaint = chart.focus >= 0 && chart.focus !== s;
            if (!chart.hidden.has(s) && isDense(series, from, to))
                drawDense(layer, series, from, to, atX, atY, box, pixelOf(colour("--s" + s % colours), isFaint ? 0.15 : 1), dashOf(s));
        });
        layer.canvas.getContext("2d").putImageData(layer.image, 0, 0);
        context.drawImage(layer.canvas, box.left, box.top);
        chart.spec.series.forEach((series, s) => {
            const [from, to] = range(series, u.scales.x.min, u.scales.x.max), isFaint = chart.focus >= 0 && chart.focus !== s;
            if (chart.hidden.has(s) || isDense(series, from, to)) return;
            context.strokeStyle = context.fillStyle = colour("--s" + s % colours);
            context.lineWidth = (chart.focus === s ? 2.5 : 1.3) * devicePixelRatio;
            context.globalAlpha = isFaint ? 0.15 : series.line ? 1 : 0.55;
            context.setLineDash(dashOf(s));
            if (series.line) drawLine(context, series, from, to, atX, atY);
            else drawPoints(context, series, u, atX, atY);
        });
        context.restore();
    }

    // What is at the pointer: a line for each series that has something there, the nearest first.
    function values(chart, u, left, top) {
        const atX = place(u, "x"), atY = place(u, "y"), ratio = devicePixelRatio, found = [];
        const px = left * ratio + u.bbox.left, py = top * ratio + u.bbox.top, x = u.posToVal(left, "x");
        chart.spec.series.forEach((series, s) => {
            if (chart.hidden.has(s)) return;
            let best = -1, least = Infinity;
            if (series.line) {
                const at = lowerBound(series.x, x);
                for (const i of [at - 1, at])
                    if (i >= 0 && i < series.x.length && Math.abs(series.x[i] - x) < least) { best = i; least = Math.abs(series.x[i] - x); }
                if (best < 0 || !Number.isFinite(series.y[best])) return;
                found.push({series, i: best, distance: Math.abs(atY(series.y[best]) - py)});
                return;
            }
            for (let i = 0; i < series.x.length; i++) {
                const distance = Math.hypot(atX(series.x[i]) - px, atY(series.y[i]) - py);
                if (distance < least) { best = i; least = distance; }
            }
            if (least < near * ratio) found.push({series, i: best, distance: least});
        });
        return found.sort((a, b) => a.distance - b.distance);
    }

    function tipText(chart, u, left, top) {
        const {spec} = chart, x = u.posToVal(left, "x"), found = values(chart, u, left, top);
        const lines = [spec.xName + ": " + word(spec, x)];
        const span = spec.spans.find(([from, to]) => x >= from && x <= to);
        if (span) lines[0] += "  (" + span[2] + ")";
        for (const {series, i} of found.slice(0, tipped))
            lines.push((series.name ? series.name + ": " : "") + format(series.y[i]) + spec.yUnit +
                       (series.line ? "" : " at " + word(spec, series.x[i])));
        if (found.length > tipped) lines.push("and " + (found.length - tipped) + " more");
        const reach = u.posToVal(5, "x") - u.posToVal(0, "x");
        const event = spec.events.find(([at]) => Math.abs(at - x) <= reach);
        if (event) lines.push(event[1]);
        return lines.join("\n");
    }

    function showTip(chart, u) {
        const {left, top} = u.cursor, isHere = left >= 0 && u.over.matches(":hover");
        chart.tip.hidden = !isHere;
        if (!isHere) return;
        chart.tip.textContent = tipText(chart, u, left, top);
        const right = left > u.over.clientWidth / 2;
        chart.tip.style.left = right ? "" : u.over.offsetLeft + left + 14 + "px";
        chart.tip.style.right = right ? u.root.clientWidth - u.over.offsetLeft - left + 14 + "px" : "";
        chart.tip.style.top = u.over.offsetTop + Math.min(top, u.over.clientHeight - chart.tip.clientHeight) + "px";
    }

    // Zooms CHART, and all that are linked with it, to MIN .. MAX.
    let isLinking = false;
    function zoomed(chart, u) {
        const {min, max} = u.scales.x;
        const [low, high] = heights(chart, min, max);
        u.setScale("y", {min: low, max: high});
        chart.reset.hidden = min === chart.ends[0] && max === chart.ends[1];
        if (isLinking || !chart.spec.link) return;
        isLinking = true;
        zooms.set(chart.spec.link, chart.reset.hidden ? null : [min, max]);
        for (const other of charts)
            if (other !== chart && other.spec.link === chart.spec.link)
                other.plot.setScale("x", {min: chart.reset.hidden ? other.ends[0] : min, max: chart.reset.hidden ? other.ends[1] : max});
        isLinking = false;
    }
    const zooms = new Map();

    function axisOf(name, isLogarithmic, labels) {
        const axis = {label: name + (isLogarithmic ? ", logarithmic" : ""), labelSize: 22, stroke: () => colour("--ink"),
                      size: 34, font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif",
                      grid: {stroke: () => colour("--rule"), width: 1}, ticks: {stroke: () => colour("--rule"), width: 1},
                      values: (u, at) => at.map(v => v === null ? "" : format(v))};
        if (isLogarithmic) axis.filter = axis.grid.filter = axis.ticks.filter = (u, at) => at.map(v => Math.abs(Math.log10(v) - Math.round(Math.log10(v))) < 1e-9 ? v : null);
        if (labels) {
            axis.splits = (u, i, min, max) => labels.map((l, k) => k).filter(k => k >= min && k <= max);
            axis.values = (u, at) => at.map(v => labels[v]);
            axis.rotate = labels.length > 8 ? -50 : 0;
            axis.size = labels.length > 8 ? 90 : 34;
        }
        return axis;
    }

    function ends(spec) {
        let low = Infinity, high = -Infinity;
        for (const {x, y} of spec.series)
            for (let i = 0; i < x.length; i++) {
                if (!Number.isFinite(y[i]) || !Number.isFinite(x[i])) continue;
                low = Math.min(low, x[i]);
                high = Math.max(high, x[i]);
            }
        return spec.labels ? [-0.5, spec.labels.length - 0.5] : widen(low, high, spec.log[0], 0.015);
    }

    function read(figure) {
        const spec = JSON.parse(figure.querySelector("script").textContent);
        spec.series.forEach((series, s) => {
            series.name = spec.names[s];
            series.x = typeof series.x === "number" ? spec.series[series.x].x : numbers(series.x, spec.wide);
            series.y = numbers(series.y, spec.wide);
        });
        return spec;
    }

    function build(figure) {
        const spec = read(figure), holder = document.createElement("div"), tip = document.createElement("div");
        const chart = {figure, spec, tip, ends: ends(spec), hidden: new Set(), focus: -1, reset: document.createElement("button")};
        const still = v => (u, min, max) => [min, max];
        const [low, high] = heights(chart, ...chart.ends), width = () => Math.max(200, figure.clientWidth);
        const yAxis = axisOf(spec.yName, spec.log[1]);
        yAxis.size = (u, texts) => 22 + 7 * Math.max(3, ...(texts ?? []).map(t => t.length));
        holder.className = "plot";
        tip.className = "tip";
        tip.hidden = true;
        chart.reset.className = "reset";
        chart.reset.textContent = "whole range";
        chart.reset.hidden = true;
        chart.plot = new uPlot({
            width: width(), height: 320, legend: {show: false}, padding: [8, 14, 0, 0],
            series: [{}, {paths: () => null, points: {show: false}}],
            scales: {x: {time: false, distr: spec.log[0] ? 3 : 1, range: still()},
                     y: {auto: false, distr: spec.log[1] ? 3 : 1, range: still()}},
            axes: [axisOf(spec.xName, spec.log[0], spec.labels), yAxis],
            cursor: {points: {show: false}, drag: {x: true, y: false},
                     sync: spec.link ? {key: spec.link, setSeries: false, filters: {pub: type => type === "mousemove" || type === "mouseleave"}} : undefined},
            hooks: {draw: [u => draw(chart, u)], setCursor: [u => showTip(chart, u)],
                    setScale: [(u, key) => { if (key === "x" && chart.plot) zoomed(chart, u); }]},
        }, [chart.ends, [low, high]], holder);
        chart.plot.setScale("y", {min: low, max: high});
        chart.reset.onclick = () => chart.plot.setScale("x", {min: chart.ends[0], max: chart.ends[1]});
        holder.append(tip);
        figure.prepend(chart.reset);
        (figure.querySelector("svg") ?? figure.querySelector("figcaption")).after(holder);
        figure.classList.add("live");
        new ResizeObserver(() => { if (figure.clientWidth > 0) chart.plot.setSize({width: width(), height: 320}); }).observe(figure);
        figure.querySelectorAll(".legend li").forEach((item, s) => {
            item.onmouseenter = () => { chart.focus = s; chart.plot.redraw(false); };
            item.onmouseleave = () => { chart.focus = -1; chart.plot.redraw(false); };
            item.onclick = () => {
                chart.hidden.has(s) ? chart.hidden.delete(s) : chart.hidden.add(s);
                item.classList.toggle("off", chart.hidden.has(s));
                zoomed(chart, chart.plot);
            };
        });
        charts.push(chart);
        const zoom = zooms.get(spec.link);
        if (zoom) chart.plot.setScale("x", {min: zoom[0], max: zoom[1]});
        return chart;
    }

    // A chart is built when it comes near the window: a page of many is there at once.
    const figures = [...document.querySelectorAll("figure.chart")];
    const show = figure => { seen.unobserve(figure); if (!figure.classList.contains("live")) build(figure); };
    const seen = new IntersectionObserver(entries => entries.filter(e => e.isIntersecting).forEach(e => show(e.target)), {rootMargin: "400px"});
    figures.forEach(figure => seen.observe(figure));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.forEach(chart => chart.plot.redraw()));
    window.assayPage = {charts, showAll: () => figures.forEach(show)}; // for the console
})();
